"""Pages for people: look, understand, decide. Made on the server, with nothing from elsewhere.

Enters: the API's desk and door. Leaves: a `Front` that the API serves behind the same door. Pages call
what the API's routes call, so that scopes, narrowing and the log are the same; nothing here speaks to proxies
or workers.

`site` every page and what they share · `visit` who asks, for what, in which language; forms · `render`
from a template to an answer: policy, tag, downloads · `formats` numbers as people read them · `sentences`
every sentence in every language (`wording/LANGUAGE/PAGE.toml`) · `sessions` signed cookies · `entrance`
logging in and out · `static` styles and scripts · a module and a template (`pages/`) for each page.
"""
