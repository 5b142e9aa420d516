-- name: take_due(pause_s, longest_pause_s)^
-- A forget whose probes are due; not again before a pause, so that daemons share the work. The pause
-- grows with the forget's age: what waits for a backup to be purged waits for weeks.
with due as (
  select forget_id from openbot.forgets
  where state <> 'cleared' and probe_due_at <= now()
  order by probe_due_at
  limit 1
  for update skip locked
)
update openbot.forgets set
  state = 'clearing',
  probe_due_at = now() + greatest(
    :pause_s * interval '1 second',
    least((now() - stopped_use_at) / 10, :longest_pause_s * interval '1 second')
  )
from due
where forgets.forget_id = due.forget_id
returning forgets.forget_id, company_id, user_id;

-- name: unproven_items(forget_id, after, row_limit)
-- Memories after the given one with a domain that is not proven, or that are due to be deleted once
-- more, and what is known of each.
select
  items.memory_id,
  memories.state = 'forgotten' and memories.text is null as erased,
  memories.recorded_at,
  scopes.bank_id, scopes.bank_settings_version is not null as bank_touched,
  entries.state as index_state,
  exists (select from openbot.outbox where outbox.memory_id = items.memory_id) as queued,
  array(
    select clearance.domain::text from openbot.clearance
    where clearance.forget_id = items.forget_id and clearance.memory_id = items.memory_id
      and not clearance.cleared
  ) as unproven
from openbot.forget_items as items
join openbot.memories using (memory_id)
join openbot.scopes using (scope_id)
join openbot.index_entries as entries using (memory_id)
where items.forget_id = :forget_id
  and (:after::uuid is null or items.memory_id > :after::uuid)
  and items.company_id = openbot.tenant_company() and items.user_id = openbot.tenant_user()
  and (
    exists (
      select from openbot.clearance
      where clearance.forget_id = items.forget_id and clearance.memory_id = items.memory_id
        and not clearance.cleared
    )
    or exists (select from openbot.outbox where outbox.memory_id = items.memory_id)
  )
order by items.memory_id
limit :row_limit;

-- name: add_evidence(company, person, forget_id, memory_id, domain, cleared, reason, observed, prober)!
-- Appends an answer, unless it only repeats the last one.
insert into openbot.clearance_evidence
  (company_id, user_id, forget_id, memory_id, domain, cleared, reason, observed, prober)
select
  :company::text, :person::text, :forget_id::uuid, :memory_id::uuid,
  :domain::text::openbot.clearance_domain, :cleared::boolean, :reason::text, :observed::text::jsonb, :prober::text
where not exists (
  select from openbot.clearance
  where clearance.forget_id = :forget_id::uuid and clearance.memory_id = :memory_id::uuid
    and clearance.domain = :domain::text::openbot.clearance_domain
    and clearance.probed_at is not null
    and clearance.cleared = :cleared::boolean
    and clearance.reason is not distinct from :reason::text
);

-- name: unpurged_backups(forget_id, memory_id, since)$
-- Registered backups that are not purged and overlap the time in which the memory could be copied: from
-- its recording until both the authority and the index were seen without it, which may be only now.
select count(*) from openbot.backups
where purged_at is null
  and ended_at >= :since
  and began_at <= (
    select case when count(*) = 2 then max(probed_at) else now() end from openbot.clearance
    where clearance.forget_id = :forget_id and clearance.memory_id = :memory_id
      and clearance.domain in ('authority_active', 'index_active') and clearance.cleared
  );

-- name: clear_if_proven(forget_id)$
-- True once every memory is proven in every domain and none is due to be deleted once more; the
-- trigger checks the evidence again.
update openbot.forgets set state = 'cleared', cleared_at = clock_timestamp()
where forget_id = :forget_id and state = 'clearing'
  and not exists (select from openbot.clearance where clearance.forget_id = :forget_id and not cleared)
  and not exists (
    select from openbot.forget_items join openbot.outbox using (memory_id)
    where forget_items.forget_id = :forget_id
  )
returning true;
