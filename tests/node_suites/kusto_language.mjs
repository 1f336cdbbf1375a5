// Answers questions to Microsoft's KQL language service, the parser and type checker of Data Explorer's editor.
// Reads one JSON document from standard input, {tables: {name: [[column, type]]}, queries: [text]} or {lists: true}, and
// writes one JSON document: for each query its errors and result columns, or the names that the service knows.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
require('@kusto/language-service-next/bridge.min.js');
require('@kusto/language-service-next/Kusto.Language.Bridge.min.js');
const { Language } = globalThis.Kusto;

const toArray = (list) => {
  const length = list.Count ?? list.length;
  return Array.from({ length }, (_, index) => (list.getItem ? list.getItem(index) : list[index]));
};

const PARAMETER_KINDS = [
  'any', 'declared', 'scalar', 'tabular', 'database', 'cluster', 'integer', 'real_or_decimal', 'string_or_dynamic',
  'string_or_array', 'integer_or_array', 'array', 'bag', 'number', 'number_or_bool', 'summable', 'orderable',
  'not_real_or_bool', 'not_dynamic', 'not_bool', 'parameter0', 'parameter1', 'parameter2', 'common_scalar',
  'common_number', 'common_summable', 'common_orderable', 'common_scalar_or_dynamic',
];
const RETURN_KINDS = [
  'declared', 'computed', 'custom', 'parameter0', 'parameter1', 'parameter2', 'parameterN', 'parameter0_literal',
  'parameter1_literal', 'parameterN_literal', 'parameter0_promoted', 'cluster', 'database', 'table', 'external_table',
  'parameter0_array', 'common', 'common_not_dynamic', 'widest', 'materialized_view', 'entity_group', 'stored_result',
  'graph',
];

const describeParameter = (parameter) => ({
  name: parameter.Name,
  types: parameter.TypeKind === 1 ? toArray(parameter.DeclaredTypes).map((type) => type.Name) : PARAMETER_KINDS[parameter.TypeKind],
  ...(parameter.ArgumentKind >= 8 ? { constant: true } : {}),
  ...(parameter.Values?.Count > 0 ? { values: toArray(parameter.Values).map(String) } : {}),
  ...(parameter.MinOccurring === 1 ? {} : { least: parameter.MinOccurring }),
  ...(parameter.MaxOccurring === 1 ? {} : { most: parameter.MaxOccurring }),
});

// Dynamic arrays and bags are types of their own.
const nameType = (type) => {
  if (type instanceof Language.Symbols.DynamicArraySymbol) {
    return 'array';
  }
  return type instanceof Language.Symbols.DynamicBagSymbol ? 'bag' : type.Name;
};

const describeReturn = (signature) => {
  if (signature.ReturnKind !== 0) {
    return `=${RETURN_KINDS[signature.ReturnKind]}`;
  }
  return signature.DeclaredReturnType ? nameType(signature.DeclaredReturnType) : 'unknown';
};

// Rules for the name of a column that has no name in the query, by ResultNameKind: whether the name starts with that of
// the function, and which argument gives the rest.
const NAMING = {
  1: [true, 'first'], 2: [true, 'only'], 3: [false, 'first'], 4: [false, 'only'], 6: [false, 'none'], 7: [false, 'first'],
  8: [false, 'only'],
};

const describeNaming = (symbol) => {
  const rule = NAMING[symbol.ResultNameKind];
  if (!rule) {
    return {};
  }
  const prefix = rule[0] ? symbol.Name : symbol.ResultNamePrefix;
  return { naming: { ...(prefix ? { prefix } : {}), argument: rule[1] } };
};

const describeFunction = (symbol) => ({
  name: symbol.Name,
  ...describeNaming(symbol),
  least: symbol.MinArgumentCount,
  most: symbol.MaxArgumentCount,
  signatures: toArray(symbol.Signatures).map((signature) => ({
    parameters: toArray(signature.Parameters).map(describeParameter),
    returns: describeReturn(signature),
  })),
});

const listSymbols = (symbols) =>
  toArray(symbols)
    .filter((symbol) => !symbol.IsHidden && !symbol.IsObsolete)
    .map(describeFunction)
    .sort((left, right) => (left.name < right.name ? -1 : 1));

const listNames = () => ({
  functions: listSymbols(Language.Functions.All),
  aggregates: listSymbols(Language.Aggregates.All),
  plugins: listSymbols(Language.PlugIns.All),
  operators: Object.keys(Language.Syntax.SyntaxKind).filter((kind) => /^(?!Bad).*Operator$/.test(kind)).sort(),
});

const buildGlobals = (tables) => {
  const { ColumnSymbol, DatabaseSymbol, ScalarTypes, TableSymbol } = Language.Symbols;
  const symbols = Object.entries(tables).map(
    ([name, columns]) =>
      new TableSymbol.$ctor4(
        name,
        columns.map(([column, type]) => new ColumnSymbol(column, ScalarTypes.GetSymbol(type))),
      ),
  );
  const database = new DatabaseSymbol.ctor('Telemetry', symbols);
  return Language.GlobalState.Default.WithDatabase(database);
};

// The service itself fails on a few texts, for instance on a decimal where it accepts certain strings only.
const parse = (text, globals) => {
  try {
    return Language.KustoCode.ParseAndAnalyze(text, globals);
  } catch {
    return null;
  }
};

const analyze = (text, globals) => {
  const code = parse(text, globals);
  if (code === null) {
    return { errors: null, columns: null };
  }
  const errors = toArray(code.GetDiagnostics())
    .filter((found) => found.Severity === 'Error')
    .map(({ Code, Message, Start, Length }) => [Code, Message, Start, Length]);
  const type = code.ResultType;
  const columns = type?.Columns && !type.IsOpen ? toArray(type.Columns).map((each) => [each.Name, each.Type.Name]) : null;
  return { errors, columns };
};

const request = JSON.parse(readFileSync(0, 'utf8'));
if (request.lists) {
  process.stdout.write(JSON.stringify(listNames()));
} else {
  const globals = buildGlobals(request.tables);
  process.stdout.write(JSON.stringify(request.queries.map((text) => analyze(text, globals))));
}
