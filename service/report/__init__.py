"""The report of a shadow job: JSON, Markdown, one self-contained page; English and Chinese.

gathering   from what a job left in the stores to a document; kept once the job is over
document    the document: frozen types over `measured`, JSON by `codec`
changes     what changed since the run before     conclusion  one paragraph to act on
page        a document as blocks, by `sections`   forms       a page as HTML, Markdown; the document as JSON
words       every sentence in every language      writing     numbers with their units and limits
"""
