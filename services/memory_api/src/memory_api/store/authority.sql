-- name: change_authority()$
-- Waits for everyone who writes facts or records of the company, and keeps them out until the end.
select openbot.change_authority();

-- name: read_feed()^
-- How far the company's facts have come.
select revision, digest, applied_at from openbot.authority_feeds
where company_id = openbot.tenant_company();

-- name: advance_feed(company, revision, digest)^
-- What was applied last.
insert into openbot.authority_feeds (company_id, revision, digest)
values (:company, :revision, :digest)
on conflict (company_id) do update set
  revision = excluded.revision, digest = excluded.digest, applied_at = excluded.applied_at
returning revision, digest, applied_at;

-- name: create_company(company)!
-- The company that the facts hang on.
insert into openbot.companies (company_id) values (:company) on conflict do nothing;

-- name: count_sources()$
-- How many sources the company has.
select count(*) from openbot.sources where company_id = openbot.tenant_company();

-- name: read_members()
-- All people of the company.
select user_id from openbot.company_members where company_id = openbot.tenant_company();

-- name: remove_members(users)$
-- Removes people; how many were there.
with removed as (
  delete from openbot.company_members
  where company_id = openbot.tenant_company() and user_id = any (:users::text[])
  returning true
)
select count(*) from removed;

-- name: upsert_members(company, users)$
-- Adds people; how many are new or changed.
with upserted as (
  insert into openbot.company_members (company_id, user_id)
  select :company, * from unnest(:users::text[])
  on conflict do nothing
  returning true
)
select count(*) from upserted;

-- name: read_teams()
-- All teams.
select team_id from openbot.teams where company_id = openbot.tenant_company();

-- name: remove_teams(teams)$
-- Removes teams; how many were there.
with removed as (
  delete from openbot.teams
  where company_id = openbot.tenant_company() and team_id = any (:teams::text[])
  returning true
)
select count(*) from removed;

-- name: upsert_teams(company, teams)$
-- Adds teams; how many are new or changed.
with upserted as (
  insert into openbot.teams (company_id, team_id)
  select :company, * from unnest(:teams::text[])
  on conflict do nothing
  returning true
)
select count(*) from upserted;

-- name: read_team_members()
-- All team memberships.
select team_id, user_id from openbot.team_members where company_id = openbot.tenant_company();

-- name: remove_team_members(teams, users)$
-- Removes team memberships; how many were there.
with removed as (
  delete from openbot.team_members
  where company_id = openbot.tenant_company()
    and (team_id, user_id) in (select * from unnest(:teams::text[], :users::text[]))
  returning true
)
select count(*) from removed;

-- name: upsert_team_members(company, teams, users)$
-- Adds team memberships; how many are new or changed.
with upserted as (
  insert into openbot.team_members (company_id, team_id, user_id)
  select :company, * from unnest(:teams::text[], :users::text[])
  on conflict do nothing
  returning true
)
select count(*) from upserted;

-- name: read_bots()
-- All bots.
select bot_id, general_preferences from openbot.bots where company_id = openbot.tenant_company();

-- name: remove_bots(bots)$
-- Removes bots; how many were there.
with removed as (
  delete from openbot.bots
  where company_id = openbot.tenant_company() and bot_id = any (:bots::text[])
  returning true
)
select count(*) from removed;

-- name: upsert_bots(company, bots, general)$
-- Adds bots; how many are new or changed.
with upserted as (
  insert into openbot.bots (company_id, bot_id, general_preferences)
  select :company, * from unnest(:bots::text[], :general::boolean[])
  on conflict (company_id, bot_id) do update set
    general_preferences = excluded.general_preferences
  where bots.general_preferences <> excluded.general_preferences
  returning true
)
select count(*) from upserted;

-- name: read_bot_teams()
-- All teams whose sources a bot may use.
select bot_id, team_id from openbot.bot_teams where company_id = openbot.tenant_company();

-- name: remove_bot_teams(bots, teams)$
-- Removes teams of bots; how many were there.
with removed as (
  delete from openbot.bot_teams
  where company_id = openbot.tenant_company()
    and (bot_id, team_id) in (select * from unnest(:bots::text[], :teams::text[]))
  returning true
)
select count(*) from removed;

-- name: upsert_bot_teams(company, bots, teams)$
-- Adds teams of bots; how many are new or changed.
with upserted as (
  insert into openbot.bot_teams (company_id, bot_id, team_id)
  select :company, * from unnest(:bots::text[], :teams::text[])
  on conflict do nothing
  returning true
)
select count(*) from upserted;

-- name: read_sources()
-- All sources.
select source_id, team_id, kind, enabled from openbot.sources where company_id = openbot.tenant_company();

-- name: remove_sources(sources)$
-- Removes sources, and with them what came from them; how many were there.
with removed as (
  delete from openbot.sources
  where company_id = openbot.tenant_company() and source_id = any (:sources::text[])
  returning true
)
select count(*) from removed;

-- name: upsert_sources(company, sources, teams, kinds, enabled)$
-- Adds sources; how many are new or changed.
with upserted as (
  insert into openbot.sources (company_id, source_id, team_id, kind, enabled)
  select :company, * from unnest(:sources::text[], :teams::text[], :kinds::text[], :enabled::boolean[])
  on conflict (company_id, source_id) do update set
    team_id = excluded.team_id,
    kind = excluded.kind,
    enabled = excluded.enabled
  where (sources.team_id, sources.kind, sources.enabled) is distinct from (excluded.team_id, excluded.kind, excluded.enabled)
  returning true
)
select count(*) from upserted;

-- name: read_source_user_grants()
-- All grants to people.
select source_id, user_id from openbot.source_user_grants where company_id = openbot.tenant_company();

-- name: remove_source_user_grants(sources, users)$
-- Removes grants to people; how many were there.
with removed as (
  delete from openbot.source_user_grants
  where company_id = openbot.tenant_company()
    and (source_id, user_id) in (select * from unnest(:sources::text[], :users::text[]))
  returning true
)
select count(*) from removed;

-- name: upsert_source_user_grants(company, sources, users)$
-- Adds grants to people; how many are new or changed.
with upserted as (
  insert into openbot.source_user_grants (company_id, source_id, user_id)
  select :company, * from unnest(:sources::text[], :users::text[])
  on conflict do nothing
  returning true
)
select count(*) from upserted;

-- name: read_source_bot_grants()
-- All grants to bots.
select source_id, bot_id from openbot.source_bot_grants where company_id = openbot.tenant_company();

-- name: remove_source_bot_grants(sources, bots)$
-- Removes grants to bots; how many were there.
with removed as (
  delete from openbot.source_bot_grants
  where company_id = openbot.tenant_company()
    and (source_id, bot_id) in (select * from unnest(:sources::text[], :bots::text[]))
  returning true
)
select count(*) from removed;

-- name: upsert_source_bot_grants(company, sources, bots)$
-- Adds grants to bots; how many are new or changed.
with upserted as (
  insert into openbot.source_bot_grants (company_id, source_id, bot_id)
  select :company, * from unnest(:sources::text[], :bots::text[])
  on conflict do nothing
  returning true
)
select count(*) from upserted;
