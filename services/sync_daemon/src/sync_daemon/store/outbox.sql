-- name: lease(lease_s)^
-- The longest due row: ready, to be retried, or left by a holder whose lease ran out.
with due as (
  select memory_id from openbot.outbox
  where (state in ('ready', 'retry') and due_at <= now())
    or (state = 'leased' and lease_expires_at <= now())
  order by due_at
  limit 1
  for update skip locked
)
update openbot.outbox set
  state = 'leased',
  lease_id = gen_random_uuid(),
  lease_generation = generation,
  lease_expires_at = now() + :lease_s * interval '1 second',
  attempts = attempts + 1,
  reason = null
from due
where outbox.memory_id = due.memory_id
returning outbox.memory_id, company_id, user_id, lease_id, attempts;

-- name: lock_held(memory_id, lease_id)$
-- True: nothing changed since the lease began. False: it is due again. Null: the lease was lost.
select generation = lease_generation from openbot.outbox
where memory_id = :memory_id and lease_id = :lease_id
for update;

-- name: remove(memory_id)!
-- Converged.
delete from openbot.outbox where memory_id = :memory_id;

-- name: release(memory_id, state, reason, delay_s)!
-- Ends the lease in another state.
update openbot.outbox set
  state = :state,
  reason = :reason,
  due_at = now() + :delay_s * interval '1 second',
  attempts = case when :state = 'ready' then 0 else attempts end,
  lease_id = null,
  lease_generation = null,
  lease_expires_at = null
where memory_id = :memory_id;

-- name: hold(memory_id, seconds)!
-- Keeps the lease, for others to wait, but no longer than needed.
update openbot.outbox set lease_expires_at = least(lease_expires_at, now() + :seconds * interval '1 second')
where memory_id = :memory_id;

-- name: enqueue(memory_ids)$
-- Due once more, by whoever comes next.
select openbot.enqueue(:memory_ids::uuid[]);

-- name: seconds_until_due()$
-- How long until a row can be leased; null if none will.
select extract(epoch from min(case when state = 'leased' then lease_expires_at else due_at end) - now())::float8
from openbot.outbox where state in ('ready', 'retry', 'leased');
