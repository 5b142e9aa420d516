-- name: any_revoked()^
-- Some scope whose source was revoked and that may still hold words. At random: daemons spread, and one
-- that cannot be erased does not hold up the others.
select scope_id, company_id, user_id from openbot.scopes
where revoked_at is not null and erased_at is null
order by random()
limit 1;

-- name: lock_scope(scope_id)$
-- The same scope in its person's transaction; null if another daemon has it, or it is done.
select true from openbot.scopes
where scope_id = :scope_id and revoked_at is not null and erased_at is null
  and company_id = openbot.tenant_company() and user_id = openbot.tenant_user()
for no key update skip locked;

-- name: lock_active(scope_id, row_limit)
-- Some of its memories that are not erased yet, in id order against forgets.
select memory_id from openbot.memories
where scope_id = :scope_id and state = 'active'
  and company_id = openbot.tenant_company() and user_id = openbot.tenant_user()
order by memory_id
limit :row_limit
for no key update;

-- name: begin_forget(forget_id, company, person, scope_id)!
-- A forget that nobody asked for: use stopped when the source was revoked.
insert into openbot.forgets (forget_id, company_id, user_id, cause, stopped_use_at)
select :forget_id::uuid, :company::text, :person::text, 'source_revoked', revoked_at
from openbot.scopes where scope_id = :scope_id;

-- name: insert_items(forget_id, company, person, memory_ids)!
-- What it names.
insert into openbot.forget_items (forget_id, memory_id, company_id, user_id)
select :forget_id, memory_id, :company, :person from unnest(:memory_ids::uuid[]) as memory_id;

-- name: erase(memory_ids)!
-- Erases the words. Row-level security lets through revoked scopes only.
update openbot.memories
set state = 'forgotten', text = null, forgotten_at = now(), version = version + 1
where memory_id = any (:memory_ids::uuid[]);

-- name: enqueue(memory_ids)$
-- The index has to follow.
select openbot.enqueue(:memory_ids::uuid[]);

-- name: await_deletion(memory_ids)!
-- And has not yet.
update openbot.index_entries
set state = 'pending', state_at = now(), indexed_version = null, failure_reason = null
where memory_id = any (:memory_ids::uuid[]);

-- name: mark_erased(scope_id)!
-- Nothing is left in the scope.
update openbot.scopes set erased_at = now() where scope_id = :scope_id;
