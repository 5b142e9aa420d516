-- migrate:up

-- "Memory M of bank B needs convergence", nothing more (I9): identifiers, times and codes, no
-- content. One row a memory, so that two daemons never work on one memory through two rows.
-- States and transitions: docs/outbox_states.md.
create table openbot.outbox (
  memory_id uuid primary key,
  company_id openbot.external_id not null,
  user_id openbot.external_id not null,
  -- Raised by every new need. A lease remembers the one it serves; a higher one at its end means
  -- that the memory changed meanwhile and is due again.
  generation bigint not null default 1,
  state text not null default 'ready' check (state in ('ready', 'leased', 'retry', 'waiting_budget', 'dead')),
  due_at timestamptz not null default now(),
  enqueued_at timestamptz not null default now(),
  attempts integer not null default 0 check (attempts >= 0),
  reason openbot.reason_code,
  lease_id uuid,
  lease_generation bigint,
  lease_expires_at timestamptz,
  foreign key (memory_id, company_id, user_id)
    references openbot.memories (memory_id, company_id, user_id),
  constraint outbox_lease_iff_leased check (
    (state = 'leased') = (lease_id is not null)
    and (lease_id is null) = (lease_generation is null)
    and (lease_id is null) = (lease_expires_at is null)
    and (lease_generation is null or lease_generation <= generation)
  ),
  constraint outbox_reason_when_stopped
    check ((state in ('retry', 'waiting_budget', 'dead')) = (reason is not null))
);
create index outbox_due on openbot.outbox (due_at) where state in ('ready', 'retry');
create index outbox_leases on openbot.outbox (lease_expires_at) where state = 'leased';

-- Only the transitions of docs/outbox_states.md. Constraints carry the shape of a state, this
-- trigger the way between two.
create function openbot.check_outbox_transition() returns trigger
  language plpgsql as $$
begin
  if (old.state, new.state) in (
    ('ready', 'ready'), ('ready', 'leased'),
    ('retry', 'ready'), ('retry', 'leased'),
    ('leased', 'leased'), ('leased', 'ready'), ('leased', 'retry'), ('leased', 'waiting_budget'),
    ('leased', 'dead'), ('waiting_budget', 'ready'), ('dead', 'ready')
  ) and new.generation >= old.generation then
    return new;
  end if;
  raise exception 'outbox: no way from % to %', old.state, new.state using errcode = 'check_violation';
end
$$;
create trigger outbox_transition before update on openbot.outbox
  for each row execute function openbot.check_outbox_transition();

-- Wakes the daemons; the payload is empty on purpose.
create function openbot.wake_daemons() returns trigger
  language plpgsql as $$
begin
  perform pg_notify('openbot_outbox', '');
  return null;
end
$$;
create trigger outbox_wake after insert or update of generation on openbot.outbox
  for each statement execute function openbot.wake_daemons();

-- Says that memories of the transaction's person need convergence. Called inside the transaction
-- that changes them, so neither exists without the other.
create function openbot.enqueue(memory_ids uuid[]) returns void
  language sql
begin atomic
  insert into openbot.outbox (memory_id, company_id, user_id)
  select memory_id, openbot.tenant_company(), openbot.tenant_user()
  from unnest(memory_ids) as memory_id
  order by memory_id
  on conflict (memory_id) do update set
    generation = outbox.generation + 1,
    state = case when outbox.state = 'leased' then 'leased' else 'ready' end,
    reason = null,
    attempts = case when outbox.state = 'leased' then outbox.attempts else 0 end,
    due_at = now();
end;

alter table openbot.outbox enable row level security;
alter table openbot.outbox force row level security;
create policy of_person on openbot.outbox to memory_api
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user())
  with check (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());
-- Draining crosses tenants; rows hold no content. Reading the record behind a row does not:
-- that happens in a transaction bound to the row's company and person.
create policy drained on openbot.outbox to sync_daemon using (true) with check (true);
create policy counted on openbot.outbox for select to memory_operator using (true);
-- An operator may give a dead row another chance, and do nothing else to a row.
create policy requeued on openbot.outbox for update to memory_operator
  using (state = 'dead') with check (state = 'ready');

grant select, insert (memory_id, company_id, user_id),
  update (generation, state, reason, attempts, due_at) on openbot.outbox to memory_api;
grant select, insert (memory_id, company_id, user_id), delete,
  update (generation, state, reason, attempts, due_at, lease_id, lease_generation, lease_expires_at)
  on openbot.outbox to sync_daemon;
grant select (state, reason, attempts, due_at, enqueued_at, lease_expires_at)
  on openbot.outbox to memory_operator;
grant update (state, reason, attempts, due_at) on openbot.outbox to memory_operator;

-- migrate:down
drop function openbot.enqueue;
drop table openbot.outbox;
drop function openbot.wake_daemons;
drop function openbot.check_outbox_transition;
