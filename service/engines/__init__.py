"""What inference engines say of themselves, and whether it holds still. Pure: pages in, facts out.

facts        what one backend tells, and what of it identifies the artifact behind it
pages        reading the engines' own pages; words   declared words against an engine's
asking       which pages to ask for, in which order
attribution  baseline against candidate: what differs besides the precision
artifact     what would be rolled out, and its digest: declared, or told by a backend
load         how busy it is; pressure   how full its KV cache is, read often
stages       its prefix cache, and time by stage
looks        at several engines over a while; histograms   their own times; signals   both, for a diagnosis
settling     when the backends of a tier agree, and since when (statistics A5)
"""
