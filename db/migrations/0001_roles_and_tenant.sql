-- migrate:up

-- The roles that services run under. They own nothing, may not log in by themselves (a deployment
-- grants them to its login users) and never bypass row-level security (I4). Roles belong to the
-- cluster, not to the database, hence the test.
do $$
declare
  role_name text;
begin
  foreach role_name in array array['memory_api', 'sync_daemon', 'memory_operator', 'authority_writer'] loop
    if not exists (select from pg_roles where rolname = role_name) then
      execute format('create role %I nologin nosuperuser nocreatedb nocreaterole nobypassrls', role_name);
    end if;
  end loop;
end
$$;

create schema openbot;
grant usage on schema openbot to memory_api, sync_daemon, memory_operator, authority_writer;

-- The tenant of the running transaction: who a statement may see. Set with
-- set_config('openbot.company' | 'openbot.user', …, is_local => true) at the start of every
-- transaction; unset or empty means nobody, so that a forgotten setting shows no rows.
create function openbot.tenant_company() returns text
  language sql stable parallel safe
  return nullif(current_setting('openbot.company', true), '');

create function openbot.tenant_user() returns text
  language sql stable parallel safe
  return nullif(current_setting('openbot.user', true), '');

-- An identifier that the control plane chose: the same rule as in the tokens (libs/authz).
create domain openbot.external_id as text
  check (value ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$');

-- A fixed upper-case reason code: never free text, so it can never carry content (I13).
create domain openbot.reason_code as text
  check (value ~ '^[A-Z][A-Z0-9_]{0,63}$');

-- migrate:down
drop schema openbot cascade;
