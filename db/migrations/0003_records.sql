-- migrate:up

-- One scope is the unit of isolation and one bank of the index. The bank's name is random: it
-- says nothing and nobody outside the services ever learns it (I4). A scope whose source was revoked
-- is never usable again; a source of the same name gets a new one, with a bank of its own.
create table openbot.scopes (
  scope_id uuid primary key default gen_random_uuid(),
  company_id openbot.external_id not null,
  user_id openbot.external_id not null,
  kind text not null check (kind in ('general', 'team_source', 'bot')),
  team_id openbot.external_id,
  source_id openbot.external_id,
  bot_id openbot.external_id,
  bank_id text not null unique default 'bank-' || replace(gen_random_uuid()::text, '-', ''),
  -- The settings that sync_daemon last set out to apply to the bank. Null: it was never touched,
  -- so the index cannot hold anything of this scope.
  bank_settings_version text,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  -- When the last memory of a revoked scope was erased.
  erased_at timestamptz,
  constraint scopes_source_iff_team_source
    check ((kind = 'team_source') = (source_id is not null) and (source_id is null) = (team_id is null)),
  constraint scopes_bot_iff_bot check ((kind = 'bot') = (bot_id is not null)),
  constraint scopes_revoked_only_with_source check (revoked_at is null or kind = 'team_source'),
  constraint scopes_erased_once_revoked check (erased_at is null or revoked_at is not null),
  unique (scope_id, company_id, user_id)
);
create unique index scopes_in_use
  on openbot.scopes (company_id, user_id, kind, team_id, source_id, bot_id) nulls not distinct
  where revoked_at is null;
create index scopes_by_source on openbot.scopes (company_id, source_id) where revoked_at is null;
create index scopes_to_erase on openbot.scopes (revoked_at) where revoked_at is not null and erased_at is null;

-- Whatever removes a source, the removal of its team included, revokes the scopes that came from it in
-- the same transaction (I6). The daemon erases their memories from here on.
create function openbot.revoke_scopes() returns trigger
  language plpgsql as $$
begin
  update openbot.scopes set revoked_at = now()
  from removed
  where scopes.company_id = removed.company_id
    and scopes.source_id = removed.source_id
    and scopes.revoked_at is null;
  perform pg_notify('openbot_outbox', '');
  return null;
end
$$;
create trigger sources_revoke_scopes after delete on openbot.sources
  referencing old table as removed
  for each statement execute function openbot.revoke_scopes();

-- What a text can be found by without the index: English words as stems, Chinese as pairs of
-- neighbouring characters. One definition for what is stored and what is asked.
create function openbot.search_vector(content text) returns tsvector
  language sql immutable strict parallel safe
begin atomic
  select to_tsvector('pg_catalog.english', regexp_replace(folded, '[㐀-䶿一-鿿豈-﫿]+', ' ', 'g'))
    || array_to_tsvector(array(
      select distinct substr(run[1], start, 2)
      from regexp_matches(folded, '[㐀-䶿一-鿿豈-﫿]+', 'g') as run,
        generate_series(1, greatest(char_length(run[1]) - 1, 1)) as start
    ))
  from (select normalize(content, nfkc) as folded) as normalised;
end;

create table openbot.memories (
  memory_id uuid primary key default gen_random_uuid(),
  company_id openbot.external_id not null,
  user_id openbot.external_id not null,
  scope_id uuid not null,
  state text not null default 'active' check (state in ('active', 'forgotten')),
  version integer not null default 1 check (version >= 1),
  text text check (char_length(text) between 1 and 4000),
  search_vector tsvector generated always as (openbot.search_vector(text)) stored,
  recorded_at timestamptz not null default now(),
  forgotten_at timestamptz,
  foreign key (scope_id, company_id, user_id) references openbot.scopes (scope_id, company_id, user_id),
  unique (memory_id, company_id, user_id),
  constraint memories_content_iff_active check (
    (state = 'active') = (text is not null) and (state = 'forgotten') = (forgotten_at is not null)
  )
);
create index memories_by_person on openbot.memories (company_id, user_id, recorded_at desc, memory_id desc);
create index memories_by_scope on openbot.memories (scope_id);

-- What was forgotten never comes back (I7), confirmed words are never edited in place, and whatever
-- changes has another version, on which etags rest.
create function openbot.refuse_revival() returns trigger
  language plpgsql as $$
begin
  if old.state = 'forgotten' or (new.text is not null and new.text is distinct from old.text) then
    raise exception 'a memory is forgotten for ever and its words are never edited'
      using errcode = 'check_violation';
  end if;
  if new.version <= old.version then
    raise exception 'a change raises the version' using errcode = 'check_violation';
  end if;
  return new;
end
$$;
create trigger memories_refuse_revival before update on openbot.memories
  for each row execute function openbot.refuse_revival();

-- How far the index has followed each memory. Apart from memories, so that the daemon's writes
-- make no further row versions of content.
create table openbot.index_entries (
  memory_id uuid primary key,
  company_id openbot.external_id not null,
  user_id openbot.external_id not null,
  state text not null default 'pending' check (state in ('pending', 'indexed', 'failed', 'deleted')),
  state_at timestamptz not null default now(),
  indexed_version integer,
  failure_reason openbot.reason_code,
  foreign key (memory_id, company_id, user_id)
    references openbot.memories (memory_id, company_id, user_id),
  constraint index_entries_reason_iff_failed check ((state = 'failed') = (failure_reason is not null)),
  constraint index_entries_version_iff_indexed check ((state = 'indexed') = (indexed_version is not null))
);

-- The scopes that the transaction's person and this bot may use now: the one place that decides
-- both which banks are asked and which rows are read (I3).
create function openbot.usable_scopes(asking_bot text, session_sources text[]) returns setof uuid
  language sql stable parallel safe
begin atomic
  select scopes.scope_id
  from openbot.scopes
  where scopes.company_id = openbot.tenant_company()
    and scopes.user_id = openbot.tenant_user()
    and scopes.revoked_at is null
    and (
      (scopes.kind = 'general' and openbot.general_usable(asking_bot))
      or (scopes.kind = 'bot' and scopes.bot_id = asking_bot and openbot.bot_usable(asking_bot))
      or exists (
        select
        from openbot.usable_sources(asking_bot, session_sources) as usable
        where usable.source_id = scopes.source_id and usable.team_id = scopes.team_id
      )
    );
end;

alter table openbot.scopes enable row level security;
alter table openbot.scopes force row level security;
alter table openbot.memories enable row level security;
alter table openbot.memories force row level security;
alter table openbot.index_entries enable row level security;
alter table openbot.index_entries force row level security;

create policy of_person on openbot.scopes to memory_api, sync_daemon
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user())
  with check (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());
-- Revoking a source crosses the people of one company; finding what is to be erased then crosses
-- companies. Scopes hold no content.
create policy seen_for_company on openbot.scopes for select to authority_writer
  using (company_id = openbot.tenant_company());
create policy revoked_for_company on openbot.scopes for update to authority_writer
  using (company_id = openbot.tenant_company() and revoked_at is null)
  with check (company_id = openbot.tenant_company() and revoked_at is not null);
create policy revoked_seen on openbot.scopes for select to sync_daemon using (revoked_at is not null);
create policy of_person on openbot.memories to memory_api
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user())
  with check (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());
-- The daemon reads words of one person at a time, and may do one thing to them: erase those of a
-- revoked scope.
create policy read_of_person on openbot.memories for select to sync_daemon
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());
create policy erased_once_revoked on openbot.memories for update to sync_daemon
  using (
    company_id = openbot.tenant_company() and user_id = openbot.tenant_user()
    and exists (
      select from openbot.scopes
      where scopes.scope_id = memories.scope_id and scopes.revoked_at is not null
    )
  )
  with check (
    company_id = openbot.tenant_company() and user_id = openbot.tenant_user() and state = 'forgotten'
  );
create policy of_person on openbot.index_entries to memory_api, sync_daemon
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user())
  with check (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());

grant select, insert (company_id, user_id, kind, team_id, source_id, bot_id) on openbot.scopes to memory_api;
grant select, update (bank_settings_version, erased_at) on openbot.scopes to sync_daemon;
grant select (company_id, source_id, revoked_at), update (revoked_at) on openbot.scopes to authority_writer;
grant select, insert (memory_id, company_id, user_id, scope_id, text),
  update (state, version, text, forgotten_at) on openbot.memories to memory_api;
grant select, update (state, version, text, forgotten_at) on openbot.memories to sync_daemon;
grant select, insert (memory_id, company_id, user_id),
  update (state, state_at, indexed_version, failure_reason) on openbot.index_entries to memory_api;
grant select, update (state, state_at, indexed_version, failure_reason)
  on openbot.index_entries to sync_daemon;

-- migrate:down
drop function openbot.usable_scopes;
drop trigger sources_revoke_scopes on openbot.sources;
drop function openbot.revoke_scopes;
drop table openbot.index_entries, openbot.memories, openbot.scopes;
drop function openbot.refuse_revival;
drop function openbot.search_vector;
