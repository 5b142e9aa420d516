-- name: usable_banks(bot, sources)^
-- The banks of the scopes this session may use now, as far as the index holds anything of them, and now.
select now() as read_at, array(
  select scopes.bank_id
  from openbot.scopes
  where scopes.scope_id in (select openbot.usable_scopes(:bot, :sources::text[]))
    and exists (
      select
      from openbot.memories join openbot.index_entries as entries using (memory_id)
      where memories.scope_id = scopes.scope_id and entries.state = 'indexed'
    )
  order by scopes.bank_id
) as banks;

-- name: lexical_matches(bot, sources, query, asked_at, unanswered_banks, row_limit)
-- Memories sharing words with the question, most shared words first: those that the index did not
-- hold yet when it was asked, and every one of the banks that gave no answer.
with asked as (
  select string_agg(quote_literal(lexeme), ' | ')::tsquery as any_lexeme, array_agg(lexeme) as lexemes
  from unnest(openbot.search_vector(:query)) as terms (lexeme, positions, weights)
)
select memories.memory_id
from openbot.memories
join openbot.scopes using (scope_id)
join openbot.index_entries as entries using (memory_id)
cross join asked
where memories.company_id = openbot.tenant_company() and memories.user_id = openbot.tenant_user()
  and memories.state = 'active'
  and memories.scope_id in (select openbot.usable_scopes(:bot, :sources::text[]))
  and (
    entries.state <> 'indexed'
    or entries.state_at >= :asked_at
    or scopes.bank_id = any (:unanswered_banks::text[])
  )
  and memories.search_vector @@ asked.any_lexeme
order by
  (
    select count(*) from unnest(memories.search_vector) as held (lexeme, positions, weights)
    where held.lexeme = any (asked.lexemes)
  ) desc,
  memories.recorded_at desc, memories.memory_id
limit :row_limit;
