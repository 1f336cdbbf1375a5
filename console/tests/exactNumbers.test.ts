import { expect, test, vi } from "vitest";
import { parseExactDefinitions } from "../src/api/exactNumbers.ts";
import { fetchWarmQueries } from "../src/pages/queries/catalogQueries.ts";
import { toBody, toDraft } from "../src/pages/queries/edit/draft.ts";
import { session } from "../src/session/index.ts";

const DYNAMIC = '{"ids":[9007199254740993,"9007199254740993",1]}';

test("whole numbers beyond 2^53 keep their digits in a default, also inside of JSON", () => {
  const read = (value: string) => parseExactDefinitions(`{"a":"x","parameters":[{"default":${value}}]}`);
  const expected = (value: unknown) => ({ a: "x", parameters: [{ default: value }] });
  expect(read("-9223372036854775808")).toEqual(expected("-9223372036854775808"));
  expect(read(DYNAMIC)).toEqual(expected(DYNAMIC));
});

test("whole numbers beyond 2^53 in the parameters of a rule become text that means the same to the service", () => {
  const text = `{"condition":{"value":9007199254740993},"parameters":{"id":9007199254740993,"list":${DYNAMIC},"n":1}}`;
  expect(parseExactDefinitions(text)).toEqual({
    condition: { value: "9007199254740993" },
    parameters: { id: "9007199254740993", list: DYNAMIC, n: 1 },
  });
});

test("other values are parsed as usual", () => {
  const text =
    '[0.12345678901234567, 1e300, 9007199254740991, "9007199254740993 \\"12345678901234567\\\\", {"default": [1]}]';
  expect(parseExactDefinitions(text)).toEqual(JSON.parse(text));
});

test("an edit of another field of a query does not change the default", async () => {
  const parameters = `[{"name":"n","type":"long","default":9007199254740993},{"name":"d","type":"dynamic","default":${DYNAMIC}}]`;
  const query = `{"lookup":"q","name":"Q","surface":"s","kql":"T","cacheSeconds":0,"parameters":${parameters}}`;
  vi.spyOn(session.api, "fetch").mockResolvedValue(new Response(`{"warmQueries":[${query}]}`));
  const [read] = await fetchWarmQueries();
  expect(read && toBody({ ...toDraft(read), name: "R" }).parameters).toEqual([
    { name: "n", type: "long", default: "9007199254740993" },
    { name: "d", type: "dynamic", default: DYNAMIC },
  ]);
});
