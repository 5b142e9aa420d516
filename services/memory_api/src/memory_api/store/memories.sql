-- name: hold_authority()$
-- Keeps the facts of the company as they are until this transaction ends; a statement of its own, so
-- that the next one sees them.
select openbot.hold_authority();

-- name: usable_scope(bot, sources, source, only_bot)^
-- The scope that this session may write to: that of the source, of its bot alone, or the general one.
select kind, team_id, source_id, bot_id from (
  select 'general' as kind, null as team_id, null as source_id, null as bot_id
  where :source::text is null and not :only_bot::boolean and openbot.general_usable(:bot)
  union all
  select 'bot', null, null, :bot::text
  where :source::text is null and :only_bot::boolean and openbot.bot_usable(:bot)
  union all
  select 'team_source', usable.team_id, usable.source_id, null
  from openbot.usable_sources(:bot, :sources::text[]) as usable
  where usable.source_id = :source::text
) as scope;

-- name: create_scope(company, person, kind, team, source, only_bot)!
-- Makes the scope unless it exists. Its bank gets a random name.
insert into openbot.scopes (company_id, user_id, kind, team_id, source_id, bot_id)
values (:company, :person, :kind, :team, :source, :only_bot)
on conflict do nothing;

-- name: scope_id(kind, team, source, only_bot)$
-- The scope of the transaction's person that is in use.
select scope_id from openbot.scopes
where kind = :kind
  and team_id is not distinct from :team::text
  and source_id is not distinct from :source::text
  and bot_id is not distinct from :only_bot::text
  and revoked_at is null
  and company_id = openbot.tenant_company() and user_id = openbot.tenant_user();

-- name: insert_memory(memory_id, company, person, scope_id, content)!
-- Records the words as they are.
insert into openbot.memories (memory_id, company_id, user_id, scope_id, text)
values (:memory_id, :company, :person, :scope_id, :content);

-- name: insert_index_entry(memory_id, company, person)!
-- The index has not followed yet.
insert into openbot.index_entries (memory_id, company_id, user_id) values (:memory_id, :company, :person);

-- name: enqueue(memory_ids)$
-- Tells the daemons, in the same transaction.
select openbot.enqueue(:memory_ids::uuid[]);

-- name: read_memories(bot, sources, memory_ids)
-- The memories that this person, bot and session may see at this moment (I2, I3).
select
  memories.memory_id, memories.version, memories.text, memories.recorded_at,
  scopes.team_id, scopes.source_id, scopes.bot_id,
  entries.state as index_state, entries.state_at as index_state_at, entries.failure_reason
from openbot.memories
join openbot.scopes using (scope_id)
join openbot.index_entries as entries using (memory_id)
where memories.memory_id = any (:memory_ids::uuid[])
  and memories.company_id = openbot.tenant_company() and memories.user_id = openbot.tenant_user()
  and memories.scope_id in (select openbot.usable_scopes(:bot, :sources::text[]));

-- name: list_memories(bot, sources, before_time, before_id, row_limit)
-- Active memories, newest first, after a position.
select
  memories.memory_id, memories.version, memories.text, memories.recorded_at,
  scopes.team_id, scopes.source_id, scopes.bot_id,
  entries.state as index_state, entries.state_at as index_state_at, entries.failure_reason
from openbot.memories
join openbot.scopes using (scope_id)
join openbot.index_entries as entries using (memory_id)
where memories.company_id = openbot.tenant_company() and memories.user_id = openbot.tenant_user()
  and memories.state = 'active'
  and memories.scope_id in (select openbot.usable_scopes(:bot, :sources::text[]))
  and (
    :before_time::timestamptz is null
    or (memories.recorded_at, memories.memory_id) < (:before_time::timestamptz, :before_id::uuid)
  )
order by memories.recorded_at desc, memories.memory_id desc
limit :row_limit;
