INSERT INTO call (role, model, endpoint, request, owner, started, state, bound)
VALUES (:role, :model, :endpoint, :request, :owner, :started, 'reserved', :bound);
