-- name: read_record(memory_id)^
-- The record as it is now, and the bank of its scope.
select memories.version, memories.text, scopes.scope_id, scopes.bank_id, scopes.bank_settings_version
from openbot.memories join openbot.scopes using (scope_id)
where memory_id = :memory_id
  and memories.company_id = openbot.tenant_company() and memories.user_id = openbot.tenant_user();

-- name: set_bank_settings(scope_id, settings_version)!
-- What was set out to be applied to the bank; written before the bank is touched.
update openbot.scopes set bank_settings_version = :settings_version where scope_id = :scope_id;

-- name: mark_indexed(memory_id, version)!
-- The index holds exactly this version, unless it is no longer the version.
update openbot.index_entries set
  state = 'indexed', state_at = clock_timestamp(), indexed_version = :version, failure_reason = null
where memory_id = :memory_id
  and exists (
    select from openbot.memories
    where memories.memory_id = :memory_id and memories.version = :version and memories.state = 'active'
  );

-- name: mark_deleted(memory_id)!
-- The index holds nothing of a forgotten memory.
update openbot.index_entries set
  state = 'deleted', state_at = clock_timestamp(), indexed_version = null, failure_reason = null
where memory_id = :memory_id
  and exists (
    select from openbot.memories where memories.memory_id = :memory_id and memories.state = 'forgotten'
  );

-- name: mark_failed(memory_id, reason)!
-- The daemon gave up.
update openbot.index_entries set
  state = 'failed', state_at = clock_timestamp(), indexed_version = null, failure_reason = :reason
where memory_id = :memory_id;

-- name: forget_indexed(scope_id, memory_id)$
-- What the index was thought to hold of a scope, it has to be given again; all but the memory at hand.
with lost as (
  update openbot.index_entries set
    state = 'pending', state_at = clock_timestamp(), indexed_version = null
  from openbot.memories
  where memories.memory_id = index_entries.memory_id
    and memories.scope_id = :scope_id
    and index_entries.state = 'indexed'
    and index_entries.memory_id <> :memory_id
  returning index_entries.memory_id
)
select openbot.enqueue(array(select memory_id from lost));
