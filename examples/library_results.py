"""Keep a tool's long result in a file and hand a preview to the model."""

import fetchstash


@fetchstash.context_result("sql_query")
def query(limit: int) -> list[dict[str, int]]:
    return [{"id": number, "square": number**2} for number in range(limit)]


print(query(5_000))
