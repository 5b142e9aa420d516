-- name: claim_request(company, person, request_id, memory_id, forget_id)$
-- True for the first to use this request id; later ones wait for the first to commit.
insert into openbot.requests (company_id, user_id, request_id, memory_id, forget_id)
values (:company, :person, :request_id, :memory_id, :forget_id)
on conflict do nothing
returning true;

-- name: claimed_request(request_id)^
-- What the first use of this request id made.
select memory_id, forget_id from openbot.requests
where request_id = :request_id
  and company_id = openbot.tenant_company() and user_id = openbot.tenant_user();
