-- migrate:up

-- Who belongs where and which sources are granted, as the control plane knows it now (DESIGN §5).
-- The token says who calls; these tables say what that person and bot may see (I3).

create table openbot.companies (
  company_id openbot.external_id primary key
);

create table openbot.company_members (
  company_id openbot.external_id not null references openbot.companies on delete cascade,
  user_id openbot.external_id not null,
  primary key (company_id, user_id)
);

create table openbot.bots (
  company_id openbot.external_id not null references openbot.companies on delete cascade,
  bot_id openbot.external_id not null,
  general_preferences boolean not null,
  primary key (company_id, bot_id)
);

create table openbot.teams (
  company_id openbot.external_id not null references openbot.companies on delete cascade,
  team_id openbot.external_id not null,
  primary key (company_id, team_id)
);

create table openbot.team_members (
  company_id openbot.external_id not null,
  team_id openbot.external_id not null,
  user_id openbot.external_id not null,
  primary key (company_id, team_id, user_id),
  foreign key (company_id, team_id) references openbot.teams on delete cascade,
  foreign key (company_id, user_id) references openbot.company_members on delete cascade
);
create index team_members_by_user on openbot.team_members (company_id, user_id);

-- Which teams' sources a bot may use, as far as each is granted to it.
create table openbot.bot_teams (
  company_id openbot.external_id not null,
  bot_id openbot.external_id not null,
  team_id openbot.external_id not null,
  primary key (company_id, bot_id, team_id),
  foreign key (company_id, bot_id) references openbot.bots on delete cascade,
  foreign key (company_id, team_id) references openbot.teams on delete cascade
);
create index bot_teams_by_team on openbot.bot_teams (company_id, team_id);

create table openbot.sources (
  company_id openbot.external_id not null,
  source_id openbot.external_id not null,
  team_id openbot.external_id not null,
  kind text not null check (kind in ('connector', 'conversation')),
  enabled boolean not null,
  primary key (company_id, source_id),
  foreign key (company_id, team_id) references openbot.teams on delete cascade
);
create index sources_by_team on openbot.sources (company_id, team_id);

create table openbot.source_user_grants (
  company_id openbot.external_id not null,
  source_id openbot.external_id not null,
  user_id openbot.external_id not null,
  primary key (company_id, source_id, user_id),
  foreign key (company_id, source_id) references openbot.sources on delete cascade,
  foreign key (company_id, user_id) references openbot.company_members on delete cascade
);
create index source_user_grants_by_user on openbot.source_user_grants (company_id, user_id);

create table openbot.source_bot_grants (
  company_id openbot.external_id not null,
  source_id openbot.external_id not null,
  bot_id openbot.external_id not null,
  primary key (company_id, source_id, bot_id),
  foreign key (company_id, source_id) references openbot.sources on delete cascade,
  foreign key (company_id, bot_id) references openbot.bots on delete cascade
);
create index source_bot_grants_by_bot on openbot.source_bot_grants (company_id, bot_id);

do $$
declare
  table_name text;
begin
  foreach table_name in array array[
    'companies', 'company_members', 'bots', 'teams', 'team_members', 'bot_teams', 'sources',
    'source_user_grants', 'source_bot_grants'
  ] loop
    execute format('alter table openbot.%I enable row level security', table_name);
    execute format('alter table openbot.%I force row level security', table_name);
    execute format(
      'create policy of_company on openbot.%I for select to memory_api
         using (company_id = openbot.tenant_company())', table_name);
    execute format(
      'create policy written_for_company on openbot.%I to authority_writer
         using (company_id = openbot.tenant_company())
         with check (company_id = openbot.tenant_company())', table_name);
    execute format('grant select on openbot.%I to memory_api', table_name);
    execute format('grant select, insert, update, delete on openbot.%I to authority_writer', table_name);
  end loop;
end
$$;

-- How far the control plane's facts of each company have come. Kept for ever, also for a company
-- whose facts are all gone, so that a late batch cannot bring them back.
create table openbot.authority_feeds (
  company_id openbot.external_id primary key,
  revision bigint not null check (revision >= 1),
  -- SHA-256 of what was applied last: tells a repetition from another writer's batch.
  digest bytea not null check (length(digest) = 32),
  applied_at timestamptz not null default now()
);
alter table openbot.authority_feeds enable row level security;
alter table openbot.authority_feeds force row level security;
create policy written_for_company on openbot.authority_feeds to authority_writer
  using (company_id = openbot.tenant_company())
  with check (company_id = openbot.tenant_company());
grant select, insert, update on openbot.authority_feeds to authority_writer;

create function openbot.refuse_older_revision() returns trigger
  language plpgsql as $$
begin
  if new.company_id <> old.company_id or new.revision < old.revision then
    raise exception 'a revision never goes back' using errcode = 'check_violation';
  end if;
  return new;
end
$$;
create trigger authority_feeds_grow before update on openbot.authority_feeds
  for each row execute function openbot.refuse_older_revision();

-- Writers of a person's records hold the facts of the company still until they commit, and whoever
-- changes the facts waits for them: when a change is acknowledged, nobody is about to write on the
-- strength of what was before (I6). Readers need no lock: a statement sees one moment.
create function openbot.hold_authority() returns void
  language sql
begin atomic
  select pg_advisory_xact_lock_shared(hashtextextended('openbot.authority/' || openbot.tenant_company(), 0));
end;
create function openbot.change_authority() returns void
  language sql
begin atomic
  select pg_advisory_xact_lock(hashtextextended('openbot.authority/' || openbot.tenant_company(), 0));
end;

-- Whether this is a bot of the company of which the transaction's person is a member now.
create function openbot.bot_usable(asking_bot text) returns boolean
  language sql stable parallel safe
begin atomic
  select exists (
    select
    from openbot.bots
    join openbot.company_members using (company_id)
    where bots.company_id = openbot.tenant_company()
      and bots.bot_id = asking_bot
      and company_members.user_id = openbot.tenant_user()
  );
end;

-- Whether this bot may see general preferences of the transaction's person now.
create function openbot.general_usable(asking_bot text) returns boolean
  language sql stable parallel safe
begin atomic
  select exists (
    select
    from openbot.bots
    join openbot.company_members using (company_id)
    where bots.company_id = openbot.tenant_company()
      and bots.bot_id = asking_bot
      and bots.general_preferences
      and company_members.user_id = openbot.tenant_user()
  );
end;

-- The sources that the transaction's person and this bot may both use now, with the team each
-- belongs to now: enabled, person a current member of company and team, bot allowed in the team,
-- both granted, and inside what the session was opened for.
create function openbot.usable_sources(asking_bot text, session_sources text[])
  returns table (source_id text, team_id text)
  language sql stable parallel safe
begin atomic
  select sources.source_id, sources.team_id
  from openbot.sources
  join openbot.team_members
    on team_members.company_id = sources.company_id
    and team_members.team_id = sources.team_id
    and team_members.user_id = openbot.tenant_user()
  join openbot.source_user_grants
    on source_user_grants.company_id = sources.company_id
    and source_user_grants.source_id = sources.source_id
    and source_user_grants.user_id = openbot.tenant_user()
  join openbot.bot_teams
    on bot_teams.company_id = sources.company_id
    and bot_teams.team_id = sources.team_id
    and bot_teams.bot_id = asking_bot
  join openbot.source_bot_grants
    on source_bot_grants.company_id = sources.company_id
    and source_bot_grants.source_id = sources.source_id
    and source_bot_grants.bot_id = asking_bot
  where sources.company_id = openbot.tenant_company()
    and sources.source_id = any (session_sources)
    and sources.enabled;
end;

-- migrate:down
drop function openbot.usable_sources;
drop function openbot.general_usable;
drop function openbot.bot_usable;
drop function openbot.change_authority;
drop function openbot.hold_authority;
drop table openbot.authority_feeds;
drop function openbot.refuse_older_revision;
drop table openbot.source_bot_grants, openbot.source_user_grants, openbot.sources, openbot.bot_teams,
  openbot.team_members, openbot.teams, openbot.bots, openbot.company_members, openbot.companies;
