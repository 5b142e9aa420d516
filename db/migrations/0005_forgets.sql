-- migrate:up

create table openbot.forgets (
  forget_id uuid primary key,
  company_id openbot.external_id not null,
  user_id openbot.external_id not null,
  state text not null default 'stopped_use' check (state in ('stopped_use', 'clearing', 'cleared')),
  cause text not null default 'requested' check (cause in ('requested', 'source_revoked')),
  stopped_use_at timestamptz not null default now(),
  cleared_at timestamptz,
  probe_due_at timestamptz not null default now(),
  unique (forget_id, company_id, user_id),
  constraint forgets_time_iff_cleared check ((state = 'cleared') = (cleared_at is not null))
);
create index forgets_due on openbot.forgets (probe_due_at) where state <> 'cleared';

create table openbot.forget_items (
  forget_id uuid not null,
  memory_id uuid not null,
  company_id openbot.external_id not null,
  user_id openbot.external_id not null,
  primary key (forget_id, memory_id),
  unique (forget_id, memory_id, company_id, user_id),
  foreign key (forget_id, company_id, user_id) references openbot.forgets (forget_id, company_id, user_id),
  foreign key (memory_id, company_id, user_id) references openbot.memories (memory_id, company_id, user_id)
);
create index forget_items_by_memory on openbot.forget_items (memory_id);

-- A forget names its memories when it is made. Later ones would be called cleared unproven (I8).
create function openbot.refuse_late_items() returns trigger
  language plpgsql as $$
begin
  if exists (select from openbot.forgets where forget_id = new.forget_id and state <> 'stopped_use') then
    raise exception 'this forget takes no more memories' using errcode = 'check_violation';
  end if;
  return new;
end
$$;
create trigger forget_items_refuse_late before insert on openbot.forget_items
  for each row execute function openbot.refuse_late_items();

-- The domains that must be proven before a forget is cleared (I8).
create type openbot.clearance_domain as enum
  ('authority_active', 'index_active', 'index_operations', 'backups');

-- What was asked of a domain and what it answered, append-only and without content: `observed`
-- maps the daemon's own words to counts and flags.
create table openbot.clearance_evidence (
  evidence_id bigint generated always as identity primary key,
  company_id openbot.external_id not null,
  user_id openbot.external_id not null,
  forget_id uuid not null,
  memory_id uuid not null,
  domain openbot.clearance_domain not null,
  cleared boolean not null,
  reason openbot.reason_code,
  observed jsonb not null,
  prober text not null check (prober ~ '^[a-z_]+/[0-9a-z.+-]{1,32}$'),
  probed_at timestamptz not null default clock_timestamp(),
  foreign key (forget_id, memory_id, company_id, user_id)
    references openbot.forget_items (forget_id, memory_id, company_id, user_id),
  constraint clearance_evidence_reason_iff_pending check (cleared = (reason is null)),
  constraint clearance_evidence_counts_and_flags check (
    jsonb_typeof(observed) = 'object'
    and not jsonb_path_exists(observed, '$.* ? (@.type() != "number" && @.type() != "boolean")')
    and not jsonb_path_exists(observed, '$.keyvalue() ? (!(@.key like_regex "^[a-z_]{1,32}$"))')
  )
);
create index clearance_evidence_latest
  on openbot.clearance_evidence (forget_id, memory_id, domain, evidence_id desc);

-- The last answer of every domain about every memory of a forget; null where it was never asked.
create view openbot.clearance with (security_invoker = true) as
select
  items.company_id, items.user_id, items.forget_id, items.memory_id, domains.domain,
  coalesce(evidence.cleared, false) as cleared, evidence.reason, evidence.probed_at
from openbot.forget_items as items
cross join unnest(enum_range(null::openbot.clearance_domain)) as domains (domain)
left join lateral (
  select clearance_evidence.cleared, clearance_evidence.reason, clearance_evidence.probed_at
  from openbot.clearance_evidence
  where clearance_evidence.forget_id = items.forget_id
    and clearance_evidence.memory_id = items.memory_id
    and clearance_evidence.domain = domains.domain
  order by clearance_evidence.evidence_id desc
  limit 1
) as evidence on true;

-- Cleared is said only with evidence for every memory in every domain (I8), and never unsaid here.
create function openbot.check_forget_proven() returns trigger
  language plpgsql as $$
begin
  if old.state = 'cleared' or (old.state, new.state) in (
    ('clearing', 'stopped_use'), ('stopped_use', 'cleared')
  ) then
    raise exception 'forget: no way from % to %', old.state, new.state using errcode = 'check_violation';
  end if;
  if new.state = 'cleared' and (
    not exists (select from openbot.forget_items where forget_id = new.forget_id)
    or exists (select from openbot.clearance where forget_id = new.forget_id and not cleared)
  ) then
    raise exception 'cleared without evidence' using errcode = 'check_violation';
  end if;
  return new;
end
$$;
create trigger forgets_proven before update on openbot.forgets
  for each row execute function openbot.check_forget_proven();

-- Requests that were carried out, so that a retry changes nothing (AIP-155).
create table openbot.requests (
  company_id openbot.external_id not null,
  user_id openbot.external_id not null,
  request_id uuid not null,
  memory_id uuid,
  forget_id uuid,
  recorded_at timestamptz not null default now(),
  primary key (company_id, user_id, request_id),
  foreign key (memory_id, company_id, user_id)
    references openbot.memories (memory_id, company_id, user_id) deferrable initially deferred,
  foreign key (forget_id, company_id, user_id)
    references openbot.forgets (forget_id, company_id, user_id) deferrable initially deferred,
  constraint requests_one_result check (num_nonnulls(memory_id, forget_id) = 1)
);
create index requests_by_memory on openbot.requests (memory_id);
create index requests_by_forget on openbot.requests (forget_id);

-- Backups that could hold content, registered by whoever takes them. No tenant: one backup holds
-- rows of all of them.
create table openbot.backups (
  backup_id uuid primary key default gen_random_uuid(),
  store text not null check (store in ('authority', 'index')),
  began_at timestamptz not null,
  ended_at timestamptz not null check (ended_at >= began_at),
  purged_at timestamptz check (purged_at >= ended_at),
  registered_at timestamptz not null default now()
);

alter table openbot.forgets enable row level security;
alter table openbot.forgets force row level security;
alter table openbot.forget_items enable row level security;
alter table openbot.forget_items force row level security;
alter table openbot.clearance_evidence enable row level security;
alter table openbot.clearance_evidence force row level security;
alter table openbot.requests enable row level security;
alter table openbot.requests force row level security;
alter table openbot.backups enable row level security;
alter table openbot.backups force row level security;

create policy of_person on openbot.forgets to memory_api
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user())
  with check (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());
-- Finding due forgets crosses tenants; the rows hold no content.
create policy seen_by_daemon on openbot.forgets for select to sync_daemon using (true);
create policy cleared_by_daemon on openbot.forgets for update to sync_daemon using (true) with check (true);
create policy begun_by_daemon on openbot.forgets for insert to sync_daemon
  with check (
    company_id = openbot.tenant_company() and user_id = openbot.tenant_user() and cause = 'source_revoked'
  );
create policy counted on openbot.forgets for select to memory_operator using (true);
create policy of_person on openbot.forget_items to memory_api, sync_daemon
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user())
  with check (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());
create policy of_person on openbot.clearance_evidence to memory_api, sync_daemon
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user())
  with check (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());
create policy of_person on openbot.requests to memory_api
  using (company_id = openbot.tenant_company() and user_id = openbot.tenant_user())
  with check (company_id = openbot.tenant_company() and user_id = openbot.tenant_user());
create policy registered on openbot.backups to memory_operator using (true) with check (true);
create policy consulted on openbot.backups for select to sync_daemon using (true);

grant select, insert (forget_id, company_id, user_id) on openbot.forgets to memory_api;
grant select, insert (forget_id, company_id, user_id, cause, stopped_use_at),
  update (state, cleared_at, probe_due_at) on openbot.forgets to sync_daemon;
grant select (state, cause, stopped_use_at, cleared_at) on openbot.forgets to memory_operator;
grant select, insert on openbot.forget_items to memory_api;
grant select, insert on openbot.forget_items to sync_daemon;
grant select on openbot.clearance_evidence to memory_api;
grant select, insert (company_id, user_id, forget_id, memory_id, domain, cleared, reason, observed, prober)
  on openbot.clearance_evidence to sync_daemon;
grant select on openbot.clearance to memory_api, sync_daemon;
grant select, insert on openbot.requests to memory_api;
grant select, insert (store, began_at, ended_at), update (purged_at) on openbot.backups to memory_operator;
grant select on openbot.backups to sync_daemon;

-- migrate:down
drop table openbot.backups, openbot.requests;
drop view openbot.clearance;
drop table openbot.clearance_evidence;
drop type openbot.clearance_domain;
drop table openbot.forget_items, openbot.forgets;
drop function openbot.refuse_late_items;
drop function openbot.check_forget_proven;
