"""Tests of aggregate functions, with the documented results."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

ROWS: list[tuple[str, list[Any]]] = [
    (
        (
            "datatable(x:long)[1,2,3,4,5,6,7,8,9,10] | summarize percentiles(x,5,50,99.9), percentile(x,99.9), "
            "percentiles_array(x,10,20), percentiles_array(x,dynamic([10,20]))"
        ),
        [1, 5, 10, 10, [1, 2], [1, 2]],
    ),
    (
        "datatable(x:long,w:long)[10,1,20,3,30,1] | summarize percentilew(x,w,50), percentilesw(x,w,20,50,100)",
        [20, 10, 20, 30],
    ),
    (
        (
            "datatable(g:string,t:long,v:string)['a',1,'x','a',2,'y','b',5,''] | summarize (T,V)=arg_max(t,v) "
            "by g | order by g asc"
        ),
        ["a", 2, "y"],
    ),
    ("datatable(g:string,t:long,v:string)['a',1,'x','a',2,'y'] | summarize arg_max(t,*) by g", ["a", 2, "y"]),
    ("datatable(g:string,t:long,v:string)['a',1,'x','a',2,'y'] | summarize arg_min(t,v,g) by g", ["a", 1, "x", "a"]),
    ("datatable(t:long,v:string)[long(null),'x'] | summarize arg_max(t,v)", [None, "x"]),
    (
        (
            "datatable(x:long,p:bool)[1,true,2,false,3,true] | summarize minif(x,p), maxif(x,not(p)), "
            "sumif(x,p), avgif(x,p), countif(p), dcountif(x,p), stdevp(x), variancep(x), count_distinct(x), "
            "count_distinctif(x,p), make_list_if(x,p), take_anyif(x,x==2), covariance(x,x)"
        ),
        [1, 2, 4, 2.0, 2, 2, 0.816496580927726, 0.6666666666666666, 3, 2, [1, 3], 2, 1.0],
    ),
    (
        (
            "datatable(x:long)[3,1,2] | sort by x asc | summarize make_list(x), make_list(x,2), "
            "make_list_with_nulls(iff(x==2,long(null),x))"
        ),
        [[1, 2, 3], [1, 2], [1, None, 3]],
    ),
    (
        (
            "datatable(x:dynamic)[dynamic([1, [2]]), dynamic({'a': 3}), dynamic('s')] | "
            "summarize make_list(x), make_list(x, 2), make_list_with_nulls(x)"
        ),
        [[1, [2], {"a": 3}, "s"], [1, [2]], [[1, [2]], {"a": 3}, "s"]],
    ),
    (
        "datatable(x:dynamic)[dynamic(['c','a']),dynamic(['b','a'])] | summarize make_set(x), make_set(tostring(x[0]))",
        [["a", "b", "c"], ["b", "c"]],
    ),
    (
        (
            "datatable(x:long)[3,1,3] | summarize s=make_set(x), n=array_length(make_set(x,1)) | project "
            "array_sort_asc(s), n"
        ),
        [[1, 3], 1],
    ),
    (
        "datatable(p:string,v:dynamic)['a',dynamic({'k1':1}),'b',dynamic({'k2':2})] | summarize make_bag(v)",
        [{"k1": 1, "k2": 2}],
    ),
    (
        "datatable(d:timespan)[1h,2h] | summarize sum(d), avg(d), min(d), sumif(d, d > 1h)",
        ["03:00:00", "01:30:00", "01:00:00", "02:00:00"],
    ),
    ("datatable(d:timespan)[] | summarize sum(d), avg(d)", ["00:00:00", None]),
    ("print s = 'b' | summarize make_set('a', 3), make_set_if(true, s == 'b'), make_set(1)", [["a"], [True], [1]]),
    ("datatable(d:real)[] | summarize sum(d), avg(d), stdev(d), make_list(d), make_set(d)", [0.0, "NaN", 0.0, [], []]),
    (
        "datatable(d:datetime)[datetime(2020-01-01)] | summarize make_list(d), make_set(d), take_any(d), avg(d)",
        [
            ["2020-01-01T00:00:00.0000000Z"],
            ["2020-01-01T00:00:00.0000000Z"],
            "2020-01-01T00:00:00.000000Z",
            "2020-01-01T00:00:00.000000Z",
        ],
    ),
    ("datatable(a:long,b:string)[1,'x'] | summarize take_any(*)", [1, "x"]),
    ("datatable(a:long,b:string)[1,'x'] | summarize take_any(a,b)", [1, "x"]),
    ("datatable(x:long)[5,3] | summarize binary_all_and(x), binary_all_or(x), binary_all_xor(x)", [1, 7, 6]),
    ("datatable(x:long)[5,3] | summarize m=make_list(x)[0]", [5]),
    ("datatable(d:decimal)[1.5, 2.5] | summarize sum(d), max(d)", ["4", "2.5"]),
    ("datatable(d:long)[1,2,3] | top 2 by d | summarize make_list(d)", [[3, 2]]),
    ("let n = 2; datatable(d:long)[1,2,3] | top n by d | where d > 0 | summarize make_list(d)", [[3, 2]]),
    ("let s = datatable(d:long)[1,3,2] | sort by d desc; s | summarize make_list(d)", [[3, 2, 1]]),
    (
        "datatable(x:long, t:timespan)[1, 1h, 2, 3h] | summarize t=avg(t), m=max(t) by g = x > 0",
        [True, "02:00:00", "03:00:00"],
    ),
    ("datatable(a:long)[1,2] | summarize (x) = max(a)", [2]),
    ("datatable(d:timespan)[1s, 3s] | summarize stdevp(d), variancep(d), covariancep(d, d)", [1e7, 1e14, 1e14]),
]


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_aggregates_have_the_documented_results(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """An aggregate returns the result in Kusto's documentation."""
    assert endpoint.query_rows(text)[0] == row


NAMES = [
    ("percentiles(x, 5, 99.9)", ["percentile_x_5", "percentile_x_99_9"]),
    ("percentile(x, 50)", ["percentile_x_50"]),
    ("percentiles_array(x, 5, 50)", ["percentiles_x"]),
    ("percentilew(x, y, 50)", ["percentile_x_50"]),
    ("(low) = percentiles(x, 5, 95)", ["low", "percentile_x_95"]),
    ("(a, b) = arg_max(x, y)", ["a", "b"]),
    ("m = arg_min(x, y)", ["m", "y"]),
    ("arg_max(x, *)", ["x", "y", "z"]),
    ("(m, v) = arg_max(x + y, z)", ["m", "v"]),
    ("minif(x, x > 1), maxif(x, x > 1)", ["minif_x", "maxif_x"]),
    ("make_list_if(x, x > 1), make_list_with_nulls(x)", ["list_x", "list_x1"]),
    ("make_set_if(x, x > 1), make_set(x, 1)", ["set_x", "set_x1"]),
    ("stdevp(x), variancep(x), count_distinct(x)", ["stdevp_x", "variancep_x", "count_distinct_x"]),
    ("take_any(x), take_anyif(y, x > 1), binary_all_or(x)", ["x", "y", "x1"]),
    ("take_any(*)", ["x", "y", "z"]),
    ("take_any(1), take_anyif(1, x > 1), binary_all_or(1)", ["any_arg0", "Column1", "Column2"]),
]


@pytest.mark.parametrize(("aggregate", "names"), NAMES)
def test_unnamed_aggregates_have_kustos_column_names(endpoint: Endpoint, aggregate: str, names: list[str]) -> None:
    """The column of an aggregate without a name has the name that Kusto gives to the column."""
    table = endpoint.query_table(f"datatable(x:long, y:long, z:string)[1, 2, 'a'] | summarize {aggregate}")
    assert [column.column_name for column in table.columns] == names


def test_aggregates_have_the_documented_types(endpoint: Endpoint) -> None:
    """The result of an aggregate has the documented type, also for an empty input."""
    query = (
        "datatable(i:int, d:timespan, t:datetime, r:real)[] | summarize sum(i), avg(i), sum(d), avg(d), avg(t),"
        " minif(t, true), make_list(t), percentiles(r, 5), count_distinct(i), stdevp(i), percentile(i, 50)"
    )
    types = [column.column_type for column in endpoint.query_table(query).columns]
    assert types == [
        "long",
        "real",
        "timespan",
        "timespan",
        "datetime",
        "datetime",
        "dynamic",
        "real",
        "long",
        "real",
        "long",
    ]


def test_aggregated_lists_have_the_order_of_the_sorted_rows(endpoint: Endpoint) -> None:
    """A list that an aggregate builds over sorted rows has their order in each group, even with several threads."""
    query = (
        "let s = range x from 1 to 500000 step 1 | extend g = x % 3 | sort by x desc; s | where x > 0"
        " | summarize l = make_list(x), f = make_list(x, 2) by g | order by g asc"
        " | project g, array_length(l), tostring(l) == tostring(array_sort_desc(l)), f"
    )
    assert endpoint.query_rows(query) == [
        [0, 166666, True, [499998, 499995]],
        [1, 166667, True, [499999, 499996]],
        [2, 166667, True, [500000, 499997]],
    ]


def test_all_columns_of_arg_max_are_from_one_row(endpoint: Endpoint) -> None:
    """All columns of arg_max() are from the same row, even if all compared values are null."""
    query = (
        "datatable(g:long, t:long, a:long, b:long)[1, 1, 7, 7, 1, 2, long(null), 8, 2, long(null), 5, 5]"
        " | summarize arg_max(t, a, b) by g | order by g asc"
    )
    assert endpoint.query_rows(query) == [[1, 2, None, 8], [2, None, 5, 5]]


@pytest.mark.parametrize(
    "text",
    [
        "datatable(x:long)[1] | summarize (a, b) = sum(x)",
        "datatable(x:long)[1] | summarize (a, b, c) = arg_max(x, x)",
        "datatable(x:long)[1] | summarize arg_max(x, y = x)",
        "datatable(x:long)[1] | summarize n = count() by (a, b) = x",
    ],
)
def test_unsupported_aggregates_are_rejected(endpoint: Endpoint, text: str) -> None:
    """An aggregate whose result would differ from Data Explorer is rejected with its name."""
    assert endpoint.query_error_code(text) == "BadRequest_NotSupported"
