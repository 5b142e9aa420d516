-- Made by `make schema` from db/migrations.

CREATE SCHEMA openbot;
CREATE TYPE openbot.clearance_domain AS ENUM (
    'authority_active',
    'index_active',
    'index_operations',
    'backups'
);
CREATE DOMAIN openbot.external_id AS text
	CONSTRAINT external_id_check CHECK ((VALUE ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$'::text));
CREATE DOMAIN openbot.reason_code AS text
	CONSTRAINT reason_code_check CHECK ((VALUE ~ '^[A-Z][A-Z0-9_]{0,63}$'::text));
CREATE FUNCTION openbot.tenant_company() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN NULLIF(current_setting('openbot.company'::text, true), ''::text);
CREATE FUNCTION openbot.tenant_user() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN NULLIF(current_setting('openbot.user'::text, true), ''::text);
CREATE TABLE openbot.bots (
    company_id openbot.external_id NOT NULL,
    bot_id openbot.external_id NOT NULL,
    general_preferences boolean NOT NULL
);
ALTER TABLE ONLY openbot.bots FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.company_members (
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL
);
ALTER TABLE ONLY openbot.company_members FORCE ROW LEVEL SECURITY;
CREATE FUNCTION openbot.bot_usable(asking_bot text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
 SELECT (EXISTS ( SELECT
            FROM (openbot.bots
              JOIN openbot.company_members USING (company_id))
           WHERE (((bots.company_id)::text = openbot.tenant_company()) AND ((bots.bot_id)::text = bot_usable.asking_bot) AND ((company_members.user_id)::text = openbot.tenant_user())))) AS "exists";
END;
CREATE FUNCTION openbot.change_authority() RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT pg_advisory_xact_lock(hashtextextended(('openbot.authority/'::text || openbot.tenant_company()), (0)::bigint)) AS pg_advisory_xact_lock;
END;
CREATE FUNCTION openbot.check_forget_proven() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION openbot.check_outbox_transition() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE TABLE openbot.outbox (
    memory_id uuid NOT NULL,
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    state text DEFAULT 'ready'::text NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    enqueued_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    reason openbot.reason_code,
    lease_id uuid,
    lease_generation bigint,
    lease_expires_at timestamp with time zone,
    CONSTRAINT outbox_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT outbox_lease_iff_leased CHECK ((((state = 'leased'::text) = (lease_id IS NOT NULL)) AND ((lease_id IS NULL) = (lease_generation IS NULL)) AND ((lease_id IS NULL) = (lease_expires_at IS NULL)) AND ((lease_generation IS NULL) OR (lease_generation <= generation)))),
    CONSTRAINT outbox_reason_when_stopped CHECK (((state = ANY (ARRAY['retry'::text, 'waiting_budget'::text, 'dead'::text])) = (reason IS NOT NULL))),
    CONSTRAINT outbox_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'leased'::text, 'retry'::text, 'waiting_budget'::text, 'dead'::text])))
);
ALTER TABLE ONLY openbot.outbox FORCE ROW LEVEL SECURITY;
CREATE FUNCTION openbot.enqueue(memory_ids uuid[]) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 INSERT INTO openbot.outbox (memory_id, company_id, user_id)  SELECT memory_id.memory_id,
             openbot.tenant_company() AS tenant_company,
             openbot.tenant_user() AS tenant_user
            FROM unnest(enqueue.memory_ids) memory_id(memory_id)
           ORDER BY memory_id.memory_id ON CONFLICT(memory_id) DO UPDATE SET generation = (outbox.generation + 1), state =
         CASE
             WHEN (outbox.state = 'leased'::text) THEN 'leased'::text
             ELSE 'ready'::text
         END, reason = NULL::text, attempts =
         CASE
             WHEN (outbox.state = 'leased'::text) THEN outbox.attempts
             ELSE 0
         END, due_at = now();
END;
CREATE FUNCTION openbot.general_usable(asking_bot text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
 SELECT (EXISTS ( SELECT
            FROM (openbot.bots
              JOIN openbot.company_members USING (company_id))
           WHERE (((bots.company_id)::text = openbot.tenant_company()) AND ((bots.bot_id)::text = general_usable.asking_bot) AND bots.general_preferences AND ((company_members.user_id)::text = openbot.tenant_user())))) AS "exists";
END;
CREATE FUNCTION openbot.hold_authority() RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT pg_advisory_xact_lock_shared(hashtextextended(('openbot.authority/'::text || openbot.tenant_company()), (0)::bigint)) AS pg_advisory_xact_lock_shared;
END;
CREATE FUNCTION openbot.refuse_late_items() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if exists (select from openbot.forgets where forget_id = new.forget_id and state <> 'stopped_use') then
    raise exception 'this forget takes no more memories' using errcode = 'check_violation';
  end if;
  return new;
end
$$;
CREATE FUNCTION openbot.refuse_older_revision() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if new.company_id <> old.company_id or new.revision < old.revision then
    raise exception 'a revision never goes back' using errcode = 'check_violation';
  end if;
  return new;
end
$$;
CREATE FUNCTION openbot.refuse_revival() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION openbot.revoke_scopes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION openbot.search_vector(content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
 SELECT (to_tsvector('english'::regconfig, regexp_replace(normalised.folded, '[㐀-䶿一-鿿豈-﫿]+'::text, ' '::text, 'g'::text)) || array_to_tsvector(ARRAY( SELECT DISTINCT substr(run.run[1], start.start, 2) AS substr
            FROM regexp_matches(normalised.folded, '[㐀-䶿一-鿿豈-﫿]+'::text, 'g'::text) run(run),
             LATERAL generate_series(1, GREATEST((char_length(run.run[1]) - 1), 1)) start(start))))
    FROM ( SELECT NORMALIZE(search_vector.content, NFKC) AS folded) normalised;
END;
CREATE TABLE openbot.bot_teams (
    company_id openbot.external_id NOT NULL,
    bot_id openbot.external_id NOT NULL,
    team_id openbot.external_id NOT NULL
);
ALTER TABLE ONLY openbot.bot_teams FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.source_bot_grants (
    company_id openbot.external_id NOT NULL,
    source_id openbot.external_id NOT NULL,
    bot_id openbot.external_id NOT NULL
);
ALTER TABLE ONLY openbot.source_bot_grants FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.source_user_grants (
    company_id openbot.external_id NOT NULL,
    source_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL
);
ALTER TABLE ONLY openbot.source_user_grants FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.sources (
    company_id openbot.external_id NOT NULL,
    source_id openbot.external_id NOT NULL,
    team_id openbot.external_id NOT NULL,
    kind text NOT NULL,
    enabled boolean NOT NULL,
    CONSTRAINT sources_kind_check CHECK ((kind = ANY (ARRAY['connector'::text, 'conversation'::text])))
);
ALTER TABLE ONLY openbot.sources FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.team_members (
    company_id openbot.external_id NOT NULL,
    team_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL
);
ALTER TABLE ONLY openbot.team_members FORCE ROW LEVEL SECURITY;
CREATE FUNCTION openbot.usable_sources(asking_bot text, session_sources text[]) RETURNS TABLE(source_id text, team_id text)
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
 SELECT sources.source_id,
     sources.team_id
    FROM ((((openbot.sources
      JOIN openbot.team_members ON ((((team_members.company_id)::text = (sources.company_id)::text) AND ((team_members.team_id)::text = (sources.team_id)::text) AND ((team_members.user_id)::text = openbot.tenant_user()))))
      JOIN openbot.source_user_grants ON ((((source_user_grants.company_id)::text = (sources.company_id)::text) AND ((source_user_grants.source_id)::text = (sources.source_id)::text) AND ((source_user_grants.user_id)::text = openbot.tenant_user()))))
      JOIN openbot.bot_teams ON ((((bot_teams.company_id)::text = (sources.company_id)::text) AND ((bot_teams.team_id)::text = (sources.team_id)::text) AND ((bot_teams.bot_id)::text = usable_sources.asking_bot))))
      JOIN openbot.source_bot_grants ON ((((source_bot_grants.company_id)::text = (sources.company_id)::text) AND ((source_bot_grants.source_id)::text = (sources.source_id)::text) AND ((source_bot_grants.bot_id)::text = usable_sources.asking_bot))))
   WHERE (((sources.company_id)::text = openbot.tenant_company()) AND ((sources.source_id)::text = ANY (usable_sources.session_sources)) AND sources.enabled);
END;
CREATE TABLE openbot.scopes (
    scope_id uuid DEFAULT gen_random_uuid() NOT NULL,
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL,
    kind text NOT NULL,
    team_id openbot.external_id,
    source_id openbot.external_id,
    bot_id openbot.external_id,
    bank_id text DEFAULT ('bank-'::text || replace((gen_random_uuid())::text, '-'::text, ''::text)) NOT NULL,
    bank_settings_version text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    revoked_at timestamp with time zone,
    erased_at timestamp with time zone,
    CONSTRAINT scopes_bot_iff_bot CHECK (((kind = 'bot'::text) = (bot_id IS NOT NULL))),
    CONSTRAINT scopes_erased_once_revoked CHECK (((erased_at IS NULL) OR (revoked_at IS NOT NULL))),
    CONSTRAINT scopes_kind_check CHECK ((kind = ANY (ARRAY['general'::text, 'team_source'::text, 'bot'::text]))),
    CONSTRAINT scopes_revoked_only_with_source CHECK (((revoked_at IS NULL) OR (kind = 'team_source'::text))),
    CONSTRAINT scopes_source_iff_team_source CHECK ((((kind = 'team_source'::text) = (source_id IS NOT NULL)) AND ((source_id IS NULL) = (team_id IS NULL))))
);
ALTER TABLE ONLY openbot.scopes FORCE ROW LEVEL SECURITY;
CREATE FUNCTION openbot.usable_scopes(asking_bot text, session_sources text[]) RETURNS SETOF uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
 SELECT scopes.scope_id
    FROM openbot.scopes
   WHERE (((scopes.company_id)::text = openbot.tenant_company()) AND ((scopes.user_id)::text = openbot.tenant_user()) AND (scopes.revoked_at IS NULL) AND (((scopes.kind = 'general'::text) AND openbot.general_usable(usable_scopes.asking_bot)) OR ((scopes.kind = 'bot'::text) AND ((scopes.bot_id)::text = usable_scopes.asking_bot) AND openbot.bot_usable(usable_scopes.asking_bot)) OR (EXISTS ( SELECT
            FROM openbot.usable_sources(usable_scopes.asking_bot, usable_scopes.session_sources) usable(source_id, team_id)
           WHERE ((usable.source_id = (scopes.source_id)::text) AND (usable.team_id = (scopes.team_id)::text))))));
END;
CREATE FUNCTION openbot.wake_daemons() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform pg_notify('openbot_outbox', '');
  return null;
end
$$;
CREATE TABLE openbot.authority_feeds (
    company_id openbot.external_id NOT NULL,
    revision bigint NOT NULL,
    digest bytea NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT authority_feeds_digest_check CHECK ((length(digest) = 32)),
    CONSTRAINT authority_feeds_revision_check CHECK ((revision >= 1))
);
ALTER TABLE ONLY openbot.authority_feeds FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.backups (
    backup_id uuid DEFAULT gen_random_uuid() NOT NULL,
    store text NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    purged_at timestamp with time zone,
    registered_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT backups_check CHECK ((ended_at >= began_at)),
    CONSTRAINT backups_check1 CHECK ((purged_at >= ended_at)),
    CONSTRAINT backups_store_check CHECK ((store = ANY (ARRAY['authority'::text, 'index'::text])))
);
ALTER TABLE ONLY openbot.backups FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.clearance_evidence (
    evidence_id bigint NOT NULL,
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL,
    forget_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    domain openbot.clearance_domain NOT NULL,
    cleared boolean NOT NULL,
    reason openbot.reason_code,
    observed jsonb NOT NULL,
    prober text NOT NULL,
    probed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT clearance_evidence_counts_and_flags CHECK (((jsonb_typeof(observed) = 'object'::text) AND (NOT jsonb_path_exists(observed, '$.*?(@.type() != "number" && @.type() != "boolean")'::jsonpath)) AND (NOT jsonb_path_exists(observed, '$.keyvalue()?(!(@."key" like_regex "^[a-z_]{1,32}$"))'::jsonpath)))),
    CONSTRAINT clearance_evidence_prober_check CHECK ((prober ~ '^[a-z_]+/[0-9a-z.+-]{1,32}$'::text)),
    CONSTRAINT clearance_evidence_reason_iff_pending CHECK ((cleared = (reason IS NULL)))
);
ALTER TABLE ONLY openbot.clearance_evidence FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.forget_items (
    forget_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL
);
ALTER TABLE ONLY openbot.forget_items FORCE ROW LEVEL SECURITY;
CREATE VIEW openbot.clearance WITH (security_invoker='true') AS
 SELECT items.company_id,
    items.user_id,
    items.forget_id,
    items.memory_id,
    domains.domain,
    COALESCE(evidence.cleared, false) AS cleared,
    evidence.reason,
    evidence.probed_at
   FROM ((openbot.forget_items items
     CROSS JOIN unnest(enum_range(NULL::openbot.clearance_domain)) domains(domain))
     LEFT JOIN LATERAL ( SELECT clearance_evidence.cleared,
            clearance_evidence.reason,
            clearance_evidence.probed_at
           FROM openbot.clearance_evidence
          WHERE ((clearance_evidence.forget_id = items.forget_id) AND (clearance_evidence.memory_id = items.memory_id) AND (clearance_evidence.domain = domains.domain))
          ORDER BY clearance_evidence.evidence_id DESC
         LIMIT 1) evidence ON (true));
ALTER TABLE openbot.clearance_evidence ALTER COLUMN evidence_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME openbot.clearance_evidence_evidence_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE openbot.companies (
    company_id openbot.external_id NOT NULL
);
ALTER TABLE ONLY openbot.companies FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.forgets (
    forget_id uuid NOT NULL,
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL,
    state text DEFAULT 'stopped_use'::text NOT NULL,
    cause text DEFAULT 'requested'::text NOT NULL,
    stopped_use_at timestamp with time zone DEFAULT now() NOT NULL,
    cleared_at timestamp with time zone,
    probe_due_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT forgets_cause_check CHECK ((cause = ANY (ARRAY['requested'::text, 'source_revoked'::text]))),
    CONSTRAINT forgets_state_check CHECK ((state = ANY (ARRAY['stopped_use'::text, 'clearing'::text, 'cleared'::text]))),
    CONSTRAINT forgets_time_iff_cleared CHECK (((state = 'cleared'::text) = (cleared_at IS NOT NULL)))
);
ALTER TABLE ONLY openbot.forgets FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.index_entries (
    memory_id uuid NOT NULL,
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    state_at timestamp with time zone DEFAULT now() NOT NULL,
    indexed_version integer,
    failure_reason openbot.reason_code,
    CONSTRAINT index_entries_reason_iff_failed CHECK (((state = 'failed'::text) = (failure_reason IS NOT NULL))),
    CONSTRAINT index_entries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'indexed'::text, 'failed'::text, 'deleted'::text]))),
    CONSTRAINT index_entries_version_iff_indexed CHECK (((state = 'indexed'::text) = (indexed_version IS NOT NULL)))
);
ALTER TABLE ONLY openbot.index_entries FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.memories (
    memory_id uuid DEFAULT gen_random_uuid() NOT NULL,
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL,
    scope_id uuid NOT NULL,
    state text DEFAULT 'active'::text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    text text,
    search_vector tsvector GENERATED ALWAYS AS (openbot.search_vector(text)) STORED,
    recorded_at timestamp with time zone DEFAULT now() NOT NULL,
    forgotten_at timestamp with time zone,
    CONSTRAINT memories_content_iff_active CHECK ((((state = 'active'::text) = (text IS NOT NULL)) AND ((state = 'forgotten'::text) = (forgotten_at IS NOT NULL)))),
    CONSTRAINT memories_state_check CHECK ((state = ANY (ARRAY['active'::text, 'forgotten'::text]))),
    CONSTRAINT memories_text_check CHECK (((char_length(text) >= 1) AND (char_length(text) <= 4000))),
    CONSTRAINT memories_version_check CHECK ((version >= 1))
);
ALTER TABLE ONLY openbot.memories FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.requests (
    company_id openbot.external_id NOT NULL,
    user_id openbot.external_id NOT NULL,
    request_id uuid NOT NULL,
    memory_id uuid,
    forget_id uuid,
    recorded_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT requests_one_result CHECK ((num_nonnulls(memory_id, forget_id) = 1))
);
ALTER TABLE ONLY openbot.requests FORCE ROW LEVEL SECURITY;
CREATE TABLE openbot.teams (
    company_id openbot.external_id NOT NULL,
    team_id openbot.external_id NOT NULL
);
ALTER TABLE ONLY openbot.teams FORCE ROW LEVEL SECURITY;
ALTER TABLE ONLY openbot.authority_feeds
    ADD CONSTRAINT authority_feeds_pkey PRIMARY KEY (company_id);
ALTER TABLE ONLY openbot.backups
    ADD CONSTRAINT backups_pkey PRIMARY KEY (backup_id);
ALTER TABLE ONLY openbot.bot_teams
    ADD CONSTRAINT bot_teams_pkey PRIMARY KEY (company_id, bot_id, team_id);
ALTER TABLE ONLY openbot.bots
    ADD CONSTRAINT bots_pkey PRIMARY KEY (company_id, bot_id);
ALTER TABLE ONLY openbot.clearance_evidence
    ADD CONSTRAINT clearance_evidence_pkey PRIMARY KEY (evidence_id);
ALTER TABLE ONLY openbot.companies
    ADD CONSTRAINT companies_pkey PRIMARY KEY (company_id);
ALTER TABLE ONLY openbot.company_members
    ADD CONSTRAINT company_members_pkey PRIMARY KEY (company_id, user_id);
ALTER TABLE ONLY openbot.forget_items
    ADD CONSTRAINT forget_items_forget_id_memory_id_company_id_user_id_key UNIQUE (forget_id, memory_id, company_id, user_id);
ALTER TABLE ONLY openbot.forget_items
    ADD CONSTRAINT forget_items_pkey PRIMARY KEY (forget_id, memory_id);
ALTER TABLE ONLY openbot.forgets
    ADD CONSTRAINT forgets_forget_id_company_id_user_id_key UNIQUE (forget_id, company_id, user_id);
ALTER TABLE ONLY openbot.forgets
    ADD CONSTRAINT forgets_pkey PRIMARY KEY (forget_id);
ALTER TABLE ONLY openbot.index_entries
    ADD CONSTRAINT index_entries_pkey PRIMARY KEY (memory_id);
ALTER TABLE ONLY openbot.memories
    ADD CONSTRAINT memories_memory_id_company_id_user_id_key UNIQUE (memory_id, company_id, user_id);
ALTER TABLE ONLY openbot.memories
    ADD CONSTRAINT memories_pkey PRIMARY KEY (memory_id);
ALTER TABLE ONLY openbot.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (memory_id);
ALTER TABLE ONLY openbot.requests
    ADD CONSTRAINT requests_pkey PRIMARY KEY (company_id, user_id, request_id);
ALTER TABLE ONLY openbot.scopes
    ADD CONSTRAINT scopes_bank_id_key UNIQUE (bank_id);
ALTER TABLE ONLY openbot.scopes
    ADD CONSTRAINT scopes_pkey PRIMARY KEY (scope_id);
ALTER TABLE ONLY openbot.scopes
    ADD CONSTRAINT scopes_scope_id_company_id_user_id_key UNIQUE (scope_id, company_id, user_id);
ALTER TABLE ONLY openbot.source_bot_grants
    ADD CONSTRAINT source_bot_grants_pkey PRIMARY KEY (company_id, source_id, bot_id);
ALTER TABLE ONLY openbot.source_user_grants
    ADD CONSTRAINT source_user_grants_pkey PRIMARY KEY (company_id, source_id, user_id);
ALTER TABLE ONLY openbot.sources
    ADD CONSTRAINT sources_pkey PRIMARY KEY (company_id, source_id);
ALTER TABLE ONLY openbot.team_members
    ADD CONSTRAINT team_members_pkey PRIMARY KEY (company_id, team_id, user_id);
ALTER TABLE ONLY openbot.teams
    ADD CONSTRAINT teams_pkey PRIMARY KEY (company_id, team_id);
CREATE INDEX bot_teams_by_team ON openbot.bot_teams USING btree (company_id, team_id);
CREATE INDEX clearance_evidence_latest ON openbot.clearance_evidence USING btree (forget_id, memory_id, domain, evidence_id DESC);
CREATE INDEX forget_items_by_memory ON openbot.forget_items USING btree (memory_id);
CREATE INDEX forgets_due ON openbot.forgets USING btree (probe_due_at) WHERE (state <> 'cleared'::text);
CREATE INDEX memories_by_person ON openbot.memories USING btree (company_id, user_id, recorded_at DESC, memory_id DESC);
CREATE INDEX memories_by_scope ON openbot.memories USING btree (scope_id);
CREATE INDEX outbox_due ON openbot.outbox USING btree (due_at) WHERE (state = ANY (ARRAY['ready'::text, 'retry'::text]));
CREATE INDEX outbox_leases ON openbot.outbox USING btree (lease_expires_at) WHERE (state = 'leased'::text);
CREATE INDEX requests_by_forget ON openbot.requests USING btree (forget_id);
CREATE INDEX requests_by_memory ON openbot.requests USING btree (memory_id);
CREATE INDEX scopes_by_source ON openbot.scopes USING btree (company_id, source_id) WHERE (revoked_at IS NULL);
CREATE UNIQUE INDEX scopes_in_use ON openbot.scopes USING btree (company_id, user_id, kind, team_id, source_id, bot_id) NULLS NOT DISTINCT WHERE (revoked_at IS NULL);
CREATE INDEX scopes_to_erase ON openbot.scopes USING btree (revoked_at) WHERE ((revoked_at IS NOT NULL) AND (erased_at IS NULL));
CREATE INDEX source_bot_grants_by_bot ON openbot.source_bot_grants USING btree (company_id, bot_id);
CREATE INDEX source_user_grants_by_user ON openbot.source_user_grants USING btree (company_id, user_id);
CREATE INDEX sources_by_team ON openbot.sources USING btree (company_id, team_id);
CREATE INDEX team_members_by_user ON openbot.team_members USING btree (company_id, user_id);
CREATE TRIGGER authority_feeds_grow BEFORE UPDATE ON openbot.authority_feeds FOR EACH ROW EXECUTE FUNCTION openbot.refuse_older_revision();
CREATE TRIGGER forget_items_refuse_late BEFORE INSERT ON openbot.forget_items FOR EACH ROW EXECUTE FUNCTION openbot.refuse_late_items();
CREATE TRIGGER forgets_proven BEFORE UPDATE ON openbot.forgets FOR EACH ROW EXECUTE FUNCTION openbot.check_forget_proven();
CREATE TRIGGER memories_refuse_revival BEFORE UPDATE ON openbot.memories FOR EACH ROW EXECUTE FUNCTION openbot.refuse_revival();
CREATE TRIGGER outbox_transition BEFORE UPDATE ON openbot.outbox FOR EACH ROW EXECUTE FUNCTION openbot.check_outbox_transition();
CREATE TRIGGER outbox_wake AFTER INSERT OR UPDATE OF generation ON openbot.outbox FOR EACH STATEMENT EXECUTE FUNCTION openbot.wake_daemons();
CREATE TRIGGER sources_revoke_scopes AFTER DELETE ON openbot.sources REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION openbot.revoke_scopes();
ALTER TABLE ONLY openbot.bot_teams
    ADD CONSTRAINT bot_teams_company_id_bot_id_fkey FOREIGN KEY (company_id, bot_id) REFERENCES openbot.bots(company_id, bot_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.bot_teams
    ADD CONSTRAINT bot_teams_company_id_team_id_fkey FOREIGN KEY (company_id, team_id) REFERENCES openbot.teams(company_id, team_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.bots
    ADD CONSTRAINT bots_company_id_fkey FOREIGN KEY (company_id) REFERENCES openbot.companies(company_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.clearance_evidence
    ADD CONSTRAINT clearance_evidence_forget_id_memory_id_company_id_user_id_fkey FOREIGN KEY (forget_id, memory_id, company_id, user_id) REFERENCES openbot.forget_items(forget_id, memory_id, company_id, user_id);
ALTER TABLE ONLY openbot.company_members
    ADD CONSTRAINT company_members_company_id_fkey FOREIGN KEY (company_id) REFERENCES openbot.companies(company_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.forget_items
    ADD CONSTRAINT forget_items_forget_id_company_id_user_id_fkey FOREIGN KEY (forget_id, company_id, user_id) REFERENCES openbot.forgets(forget_id, company_id, user_id);
ALTER TABLE ONLY openbot.forget_items
    ADD CONSTRAINT forget_items_memory_id_company_id_user_id_fkey FOREIGN KEY (memory_id, company_id, user_id) REFERENCES openbot.memories(memory_id, company_id, user_id);
ALTER TABLE ONLY openbot.index_entries
    ADD CONSTRAINT index_entries_memory_id_company_id_user_id_fkey FOREIGN KEY (memory_id, company_id, user_id) REFERENCES openbot.memories(memory_id, company_id, user_id);
ALTER TABLE ONLY openbot.memories
    ADD CONSTRAINT memories_scope_id_company_id_user_id_fkey FOREIGN KEY (scope_id, company_id, user_id) REFERENCES openbot.scopes(scope_id, company_id, user_id);
ALTER TABLE ONLY openbot.outbox
    ADD CONSTRAINT outbox_memory_id_company_id_user_id_fkey FOREIGN KEY (memory_id, company_id, user_id) REFERENCES openbot.memories(memory_id, company_id, user_id);
ALTER TABLE ONLY openbot.requests
    ADD CONSTRAINT requests_forget_id_company_id_user_id_fkey FOREIGN KEY (forget_id, company_id, user_id) REFERENCES openbot.forgets(forget_id, company_id, user_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY openbot.requests
    ADD CONSTRAINT requests_memory_id_company_id_user_id_fkey FOREIGN KEY (memory_id, company_id, user_id) REFERENCES openbot.memories(memory_id, company_id, user_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY openbot.source_bot_grants
    ADD CONSTRAINT source_bot_grants_company_id_bot_id_fkey FOREIGN KEY (company_id, bot_id) REFERENCES openbot.bots(company_id, bot_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.source_bot_grants
    ADD CONSTRAINT source_bot_grants_company_id_source_id_fkey FOREIGN KEY (company_id, source_id) REFERENCES openbot.sources(company_id, source_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.source_user_grants
    ADD CONSTRAINT source_user_grants_company_id_source_id_fkey FOREIGN KEY (company_id, source_id) REFERENCES openbot.sources(company_id, source_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.source_user_grants
    ADD CONSTRAINT source_user_grants_company_id_user_id_fkey FOREIGN KEY (company_id, user_id) REFERENCES openbot.company_members(company_id, user_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.sources
    ADD CONSTRAINT sources_company_id_team_id_fkey FOREIGN KEY (company_id, team_id) REFERENCES openbot.teams(company_id, team_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.team_members
    ADD CONSTRAINT team_members_company_id_team_id_fkey FOREIGN KEY (company_id, team_id) REFERENCES openbot.teams(company_id, team_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.team_members
    ADD CONSTRAINT team_members_company_id_user_id_fkey FOREIGN KEY (company_id, user_id) REFERENCES openbot.company_members(company_id, user_id) ON DELETE CASCADE;
ALTER TABLE ONLY openbot.teams
    ADD CONSTRAINT teams_company_id_fkey FOREIGN KEY (company_id) REFERENCES openbot.companies(company_id) ON DELETE CASCADE;
ALTER TABLE openbot.authority_feeds ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.backups ENABLE ROW LEVEL SECURITY;
CREATE POLICY begun_by_daemon ON openbot.forgets FOR INSERT TO sync_daemon WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()) AND (cause = 'source_revoked'::text)));
ALTER TABLE openbot.bot_teams ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.bots ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.clearance_evidence ENABLE ROW LEVEL SECURITY;
CREATE POLICY cleared_by_daemon ON openbot.forgets FOR UPDATE TO sync_daemon USING (true) WITH CHECK (true);
ALTER TABLE openbot.companies ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.company_members ENABLE ROW LEVEL SECURITY;
CREATE POLICY consulted ON openbot.backups FOR SELECT TO sync_daemon USING (true);
CREATE POLICY counted ON openbot.forgets FOR SELECT TO memory_operator USING (true);
CREATE POLICY counted ON openbot.outbox FOR SELECT TO memory_operator USING (true);
CREATE POLICY drained ON openbot.outbox TO sync_daemon USING (true) WITH CHECK (true);
CREATE POLICY erased_once_revoked ON openbot.memories FOR UPDATE TO sync_daemon USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()) AND (EXISTS ( SELECT
   FROM openbot.scopes
  WHERE ((scopes.scope_id = memories.scope_id) AND (scopes.revoked_at IS NOT NULL)))))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()) AND (state = 'forgotten'::text)));
ALTER TABLE openbot.forget_items ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.forgets ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.index_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.memories ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_company ON openbot.bot_teams FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_company ON openbot.bots FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_company ON openbot.companies FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_company ON openbot.company_members FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_company ON openbot.source_bot_grants FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_company ON openbot.source_user_grants FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_company ON openbot.sources FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_company ON openbot.team_members FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_company ON openbot.teams FOR SELECT TO memory_api USING (((company_id)::text = openbot.tenant_company()));
CREATE POLICY of_person ON openbot.clearance_evidence TO memory_api, sync_daemon USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
CREATE POLICY of_person ON openbot.forget_items TO memory_api, sync_daemon USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
CREATE POLICY of_person ON openbot.forgets TO memory_api USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
CREATE POLICY of_person ON openbot.index_entries TO memory_api, sync_daemon USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
CREATE POLICY of_person ON openbot.memories TO memory_api USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
CREATE POLICY of_person ON openbot.outbox TO memory_api USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
CREATE POLICY of_person ON openbot.requests TO memory_api USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
CREATE POLICY of_person ON openbot.scopes TO memory_api, sync_daemon USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user()))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
ALTER TABLE openbot.outbox ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_of_person ON openbot.memories FOR SELECT TO sync_daemon USING ((((company_id)::text = openbot.tenant_company()) AND ((user_id)::text = openbot.tenant_user())));
CREATE POLICY registered ON openbot.backups TO memory_operator USING (true) WITH CHECK (true);
ALTER TABLE openbot.requests ENABLE ROW LEVEL SECURITY;
CREATE POLICY requeued ON openbot.outbox FOR UPDATE TO memory_operator USING ((state = 'dead'::text)) WITH CHECK ((state = 'ready'::text));
CREATE POLICY revoked_for_company ON openbot.scopes FOR UPDATE TO authority_writer USING ((((company_id)::text = openbot.tenant_company()) AND (revoked_at IS NULL))) WITH CHECK ((((company_id)::text = openbot.tenant_company()) AND (revoked_at IS NOT NULL)));
CREATE POLICY revoked_seen ON openbot.scopes FOR SELECT TO sync_daemon USING ((revoked_at IS NOT NULL));
ALTER TABLE openbot.scopes ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen_by_daemon ON openbot.forgets FOR SELECT TO sync_daemon USING (true);
CREATE POLICY seen_for_company ON openbot.scopes FOR SELECT TO authority_writer USING (((company_id)::text = openbot.tenant_company()));
ALTER TABLE openbot.source_bot_grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.source_user_grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.team_members ENABLE ROW LEVEL SECURITY;
ALTER TABLE openbot.teams ENABLE ROW LEVEL SECURITY;
CREATE POLICY written_for_company ON openbot.authority_feeds TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.bot_teams TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.bots TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.companies TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.company_members TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.source_bot_grants TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.source_user_grants TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.sources TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.team_members TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
CREATE POLICY written_for_company ON openbot.teams TO authority_writer USING (((company_id)::text = openbot.tenant_company())) WITH CHECK (((company_id)::text = openbot.tenant_company()));
GRANT USAGE ON SCHEMA openbot TO memory_api;
GRANT USAGE ON SCHEMA openbot TO sync_daemon;
GRANT USAGE ON SCHEMA openbot TO memory_operator;
GRANT USAGE ON SCHEMA openbot TO authority_writer;
GRANT SELECT ON TABLE openbot.bots TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.bots TO authority_writer;
GRANT SELECT ON TABLE openbot.company_members TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.company_members TO authority_writer;
GRANT SELECT ON TABLE openbot.outbox TO memory_api;
GRANT SELECT,DELETE ON TABLE openbot.outbox TO sync_daemon;
GRANT INSERT(memory_id) ON TABLE openbot.outbox TO memory_api;
GRANT INSERT(memory_id) ON TABLE openbot.outbox TO sync_daemon;
GRANT INSERT(company_id) ON TABLE openbot.outbox TO memory_api;
GRANT INSERT(company_id) ON TABLE openbot.outbox TO sync_daemon;
GRANT INSERT(user_id) ON TABLE openbot.outbox TO memory_api;
GRANT INSERT(user_id) ON TABLE openbot.outbox TO sync_daemon;
GRANT UPDATE(generation) ON TABLE openbot.outbox TO memory_api;
GRANT UPDATE(generation) ON TABLE openbot.outbox TO sync_daemon;
GRANT UPDATE(state) ON TABLE openbot.outbox TO memory_api;
GRANT UPDATE(state) ON TABLE openbot.outbox TO sync_daemon;
GRANT SELECT(state),UPDATE(state) ON TABLE openbot.outbox TO memory_operator;
GRANT UPDATE(due_at) ON TABLE openbot.outbox TO memory_api;
GRANT UPDATE(due_at) ON TABLE openbot.outbox TO sync_daemon;
GRANT SELECT(due_at),UPDATE(due_at) ON TABLE openbot.outbox TO memory_operator;
GRANT SELECT(enqueued_at) ON TABLE openbot.outbox TO memory_operator;
GRANT UPDATE(attempts) ON TABLE openbot.outbox TO memory_api;
GRANT UPDATE(attempts) ON TABLE openbot.outbox TO sync_daemon;
GRANT SELECT(attempts),UPDATE(attempts) ON TABLE openbot.outbox TO memory_operator;
GRANT UPDATE(reason) ON TABLE openbot.outbox TO memory_api;
GRANT UPDATE(reason) ON TABLE openbot.outbox TO sync_daemon;
GRANT SELECT(reason),UPDATE(reason) ON TABLE openbot.outbox TO memory_operator;
GRANT UPDATE(lease_id) ON TABLE openbot.outbox TO sync_daemon;
GRANT UPDATE(lease_generation) ON TABLE openbot.outbox TO sync_daemon;
GRANT UPDATE(lease_expires_at) ON TABLE openbot.outbox TO sync_daemon;
GRANT SELECT(lease_expires_at) ON TABLE openbot.outbox TO memory_operator;
GRANT SELECT ON TABLE openbot.bot_teams TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.bot_teams TO authority_writer;
GRANT SELECT ON TABLE openbot.source_bot_grants TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.source_bot_grants TO authority_writer;
GRANT SELECT ON TABLE openbot.source_user_grants TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.source_user_grants TO authority_writer;
GRANT SELECT ON TABLE openbot.sources TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.sources TO authority_writer;
GRANT SELECT ON TABLE openbot.team_members TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.team_members TO authority_writer;
GRANT SELECT ON TABLE openbot.scopes TO memory_api;
GRANT SELECT ON TABLE openbot.scopes TO sync_daemon;
GRANT INSERT(company_id) ON TABLE openbot.scopes TO memory_api;
GRANT SELECT(company_id) ON TABLE openbot.scopes TO authority_writer;
GRANT INSERT(user_id) ON TABLE openbot.scopes TO memory_api;
GRANT INSERT(kind) ON TABLE openbot.scopes TO memory_api;
GRANT INSERT(team_id) ON TABLE openbot.scopes TO memory_api;
GRANT INSERT(source_id) ON TABLE openbot.scopes TO memory_api;
GRANT SELECT(source_id) ON TABLE openbot.scopes TO authority_writer;
GRANT INSERT(bot_id) ON TABLE openbot.scopes TO memory_api;
GRANT UPDATE(bank_settings_version) ON TABLE openbot.scopes TO sync_daemon;
GRANT SELECT(revoked_at),UPDATE(revoked_at) ON TABLE openbot.scopes TO authority_writer;
GRANT UPDATE(erased_at) ON TABLE openbot.scopes TO sync_daemon;
GRANT SELECT,INSERT,UPDATE ON TABLE openbot.authority_feeds TO authority_writer;
GRANT SELECT ON TABLE openbot.backups TO memory_operator;
GRANT SELECT ON TABLE openbot.backups TO sync_daemon;
GRANT INSERT(store) ON TABLE openbot.backups TO memory_operator;
GRANT INSERT(began_at) ON TABLE openbot.backups TO memory_operator;
GRANT INSERT(ended_at) ON TABLE openbot.backups TO memory_operator;
GRANT UPDATE(purged_at) ON TABLE openbot.backups TO memory_operator;
GRANT SELECT ON TABLE openbot.clearance_evidence TO memory_api;
GRANT SELECT ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(company_id) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(user_id) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(forget_id) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(memory_id) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(domain) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(cleared) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(reason) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(observed) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT INSERT(prober) ON TABLE openbot.clearance_evidence TO sync_daemon;
GRANT SELECT,INSERT ON TABLE openbot.forget_items TO memory_api;
GRANT SELECT,INSERT ON TABLE openbot.forget_items TO sync_daemon;
GRANT SELECT ON TABLE openbot.clearance TO memory_api;
GRANT SELECT ON TABLE openbot.clearance TO sync_daemon;
GRANT SELECT ON TABLE openbot.companies TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.companies TO authority_writer;
GRANT SELECT ON TABLE openbot.forgets TO memory_api;
GRANT SELECT ON TABLE openbot.forgets TO sync_daemon;
GRANT INSERT(forget_id) ON TABLE openbot.forgets TO memory_api;
GRANT INSERT(forget_id) ON TABLE openbot.forgets TO sync_daemon;
GRANT INSERT(company_id) ON TABLE openbot.forgets TO memory_api;
GRANT INSERT(company_id) ON TABLE openbot.forgets TO sync_daemon;
GRANT INSERT(user_id) ON TABLE openbot.forgets TO memory_api;
GRANT INSERT(user_id) ON TABLE openbot.forgets TO sync_daemon;
GRANT UPDATE(state) ON TABLE openbot.forgets TO sync_daemon;
GRANT SELECT(state) ON TABLE openbot.forgets TO memory_operator;
GRANT INSERT(cause) ON TABLE openbot.forgets TO sync_daemon;
GRANT SELECT(cause) ON TABLE openbot.forgets TO memory_operator;
GRANT INSERT(stopped_use_at) ON TABLE openbot.forgets TO sync_daemon;
GRANT SELECT(stopped_use_at) ON TABLE openbot.forgets TO memory_operator;
GRANT UPDATE(cleared_at) ON TABLE openbot.forgets TO sync_daemon;
GRANT SELECT(cleared_at) ON TABLE openbot.forgets TO memory_operator;
GRANT UPDATE(probe_due_at) ON TABLE openbot.forgets TO sync_daemon;
GRANT SELECT ON TABLE openbot.index_entries TO memory_api;
GRANT SELECT ON TABLE openbot.index_entries TO sync_daemon;
GRANT INSERT(memory_id) ON TABLE openbot.index_entries TO memory_api;
GRANT INSERT(company_id) ON TABLE openbot.index_entries TO memory_api;
GRANT INSERT(user_id) ON TABLE openbot.index_entries TO memory_api;
GRANT UPDATE(state) ON TABLE openbot.index_entries TO memory_api;
GRANT UPDATE(state) ON TABLE openbot.index_entries TO sync_daemon;
GRANT UPDATE(state_at) ON TABLE openbot.index_entries TO memory_api;
GRANT UPDATE(state_at) ON TABLE openbot.index_entries TO sync_daemon;
GRANT UPDATE(indexed_version) ON TABLE openbot.index_entries TO memory_api;
GRANT UPDATE(indexed_version) ON TABLE openbot.index_entries TO sync_daemon;
GRANT UPDATE(failure_reason) ON TABLE openbot.index_entries TO memory_api;
GRANT UPDATE(failure_reason) ON TABLE openbot.index_entries TO sync_daemon;
GRANT SELECT ON TABLE openbot.memories TO memory_api;
GRANT SELECT ON TABLE openbot.memories TO sync_daemon;
GRANT INSERT(memory_id) ON TABLE openbot.memories TO memory_api;
GRANT INSERT(company_id) ON TABLE openbot.memories TO memory_api;
GRANT INSERT(user_id) ON TABLE openbot.memories TO memory_api;
GRANT INSERT(scope_id) ON TABLE openbot.memories TO memory_api;
GRANT UPDATE(state) ON TABLE openbot.memories TO memory_api;
GRANT UPDATE(state) ON TABLE openbot.memories TO sync_daemon;
GRANT UPDATE(version) ON TABLE openbot.memories TO memory_api;
GRANT UPDATE(version) ON TABLE openbot.memories TO sync_daemon;
GRANT INSERT(text),UPDATE(text) ON TABLE openbot.memories TO memory_api;
GRANT UPDATE(text) ON TABLE openbot.memories TO sync_daemon;
GRANT UPDATE(forgotten_at) ON TABLE openbot.memories TO memory_api;
GRANT UPDATE(forgotten_at) ON TABLE openbot.memories TO sync_daemon;
GRANT SELECT,INSERT ON TABLE openbot.requests TO memory_api;
GRANT SELECT ON TABLE openbot.teams TO memory_api;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE openbot.teams TO authority_writer;
