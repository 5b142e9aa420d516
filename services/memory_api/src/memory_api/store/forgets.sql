-- name: lock_usable(bot, sources, memory_ids)
-- The memories among these that this session may use, locked in id order against other forgets.
select memories.memory_id, memories.version, memories.state
from openbot.memories
where memories.memory_id = any (:memory_ids::uuid[])
  and memories.company_id = openbot.tenant_company() and memories.user_id = openbot.tenant_user()
  and memories.scope_id in (select openbot.usable_scopes(:bot, :sources::text[]))
order by memories.memory_id
for no key update of memories;

-- name: insert_forget(forget_id, company, person)!
-- The request itself.
insert into openbot.forgets (forget_id, company_id, user_id) values (:forget_id, :company, :person);

-- name: insert_items(forget_id, company, person, memory_ids)!
-- What it names.
insert into openbot.forget_items (forget_id, memory_id, company_id, user_id)
select :forget_id, memory_id, :company, :person from unnest(:memory_ids::uuid[]) as memory_id;

-- name: erase(memory_ids)!
-- Stops use and erases the words, in the transaction that acknowledges (I6).
update openbot.memories
set state = 'forgotten', text = null, forgotten_at = now(), version = version + 1
where memory_id = any (:memory_ids::uuid[]) and state = 'active'
  and company_id = openbot.tenant_company() and user_id = openbot.tenant_user();

-- name: enqueue(memory_ids)$
-- Tells the daemons, in the same transaction.
select openbot.enqueue(:memory_ids::uuid[]);

-- name: await_deletion(memory_ids)!
-- The index has to follow again.
update openbot.index_entries
set state = 'pending', state_at = now(), indexed_version = null, failure_reason = null
where memory_id = any (:memory_ids::uuid[])
  and company_id = openbot.tenant_company() and user_id = openbot.tenant_user();

-- name: item_ids(forget_id)
-- What a forget names.
select memory_id from openbot.forget_items
where forget_id = :forget_id
  and company_id = openbot.tenant_company() and user_id = openbot.tenant_user();

-- name: read_forget(bot, forget_id)^
-- A forget of the transaction's person, if the person and the bot are of the company now.
select
  forget_id, state, cause, stopped_use_at, cleared_at,
  (select count(*) from openbot.forget_items where forget_items.forget_id = forgets.forget_id) as memory_count
from openbot.forgets
where forget_id = :forget_id
  and company_id = openbot.tenant_company() and user_id = openbot.tenant_user()
  and openbot.bot_usable(:bot);

-- name: clearances(forget_id)
-- Progress by domain: counts, the last time any was asked, and one reason that still stands.
select
  domain,
  count(*) filter (where cleared) as cleared_count,
  max(probed_at) as probed_at,
  case when bool_and(cleared) then null
    else coalesce(max(reason) filter (where not cleared), 'NOT_PROBED_YET') end as pending_reason
from openbot.clearance
where forget_id = :forget_id
group by domain
order by domain;
