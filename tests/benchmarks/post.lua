-- The body of every request: about 1.5 KB, as a chat completion.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"model":"m","messages":[{"role":"user","content":"' .. string.rep("x", 1500) .. '"}]}'
