"""What a person may decide about a tier: offered on its page, told exactly, confirmed, done as the API does.

`offers` what may be decided, and the scope that it takes · `foretelling` what it would do ·
`forms` from fields to the API's bodies · `page` `/tier/act`.
"""
