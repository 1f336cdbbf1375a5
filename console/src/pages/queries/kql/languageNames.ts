// Names of KQL by Microsoft's language service; written by `python -m scripts.kql_language`.

/** Operators that stand after a pipe. */
export const OPERATORS: readonly string[] = `
  as assert-schema consume count distinct evaluate execute-and-cache extend facet find fork getschema
  graph-mark-components graph-match graph-shortest-paths graph-to-table graph-where-edges graph-where-nodes invoke join
  limit lookup macro-expand make-graph make-series mv-apply mv-expand order parse parse-kv parse-where partition print
  project project-away project-by-names project-keep project-rename project-reorder range reduce render sample
  sample-distinct scan search serialize sort summarize take top top-hitters top-nested union where
`
  .trim()
  .split(/\s+/);

/** Functions, with those that aggregate and the plugins of `evaluate`. */
export const FUNCTIONS: readonly string[] = `
  abs acos active_users_count activity_counts_metrics activity_engagement activity_metrics ago ai_chat_completion
  ai_chat_completion_prompt ai_embeddings all any arg_max arg_min around array_concat array_iff array_index_of
  array_length array_reverse array_rotate_left array_rotate_right array_shift_left array_shift_right array_slice
  array_sort_asc array_sort_desc array_split array_strcat asin assert atan atan2 autocluster avg avgif
  azure_digital_twins_query_request bag_has_key bag_keys bag_merge bag_pack bag_pack_columns bag_remove_keys bag_set_key
  bag_unpack bag_zip base64_decode_toarray base64_decode_toguid base64_decode_tostring base64_encode_fromarray
  base64_encode_fromguid base64_encode_tostring basket beta_cdf beta_inv beta_pdf bin bin_at binary_all_and
  binary_all_or binary_all_xor binary_and binary_not binary_or binary_shift_left binary_shift_right binary_xor
  bitset_count_ones buildschema case ceiling cluster coalesce column_ifexists column_names_of convert_angle
  convert_energy convert_force convert_length convert_mass convert_speed convert_temperature convert_volume cos
  cosmosdb_sql_request cot count count_distinct count_distinctif countif countof covariance covarianceif covariancep
  covariancepif csharp current_cluster_endpoint current_database current_principal current_principal_details
  current_principal_is_member_of cursor_after cursor_before_or_at cursor_current database datetime_add datetime_diff
  datetime_list_timezones datetime_local_to_utc datetime_part datetime_utc_to_local dayofmonth dayofweek dayofyear
  dcount dcount_hll dcount_intersect dcountif degrees diffpatterns dynamic_to_json endofday endofmonth endofweek
  endofyear entity_group erf erfc estimate_data_size estimate_rows_count execute_query execute_show_command exp exp10
  exp2 extent_id extent_tags external_datatable external_table extract extract_all extract_json extractjson floor
  format_bytes format_datetime format_ipv4 format_ipv4_mask format_timespan funnel_sequence funnel_sequence_completion
  gamma geo_angle geo_azimuth geo_closest_point_on_line geo_closest_point_on_polygon geo_distance_2points
  geo_distance_point_to_line geo_distance_point_to_polygon geo_from_wkt geo_geohash_neighbors
  geo_geohash_to_central_point geo_geohash_to_polygon geo_h3cell_children geo_h3cell_level geo_h3cell_neighbors
  geo_h3cell_parent geo_h3cell_rings geo_h3cell_to_central_point geo_h3cell_to_polygon geo_info_from_ip_address
  geo_intersection_2lines geo_intersection_2polygons geo_intersection_line_with_polygon geo_intersects_2lines
  geo_intersects_2polygons geo_intersects_line_with_polygon geo_line_buffer geo_line_centroid geo_line_densify
  geo_line_interpolate_point geo_line_length geo_line_locate_point geo_line_lookup geo_line_simplify geo_line_to_s2cells
  geo_point_buffer geo_point_in_circle geo_point_in_polygon geo_point_to_geohash geo_point_to_h3cell geo_point_to_s2cell
  geo_polygon_area geo_polygon_buffer geo_polygon_centroid geo_polygon_densify geo_polygon_lookup geo_polygon_perimeter
  geo_polygon_simplify geo_polygon_to_h3cells geo_polygon_to_s2cells geo_s2cell_neighbors geo_s2cell_to_central_point
  geo_s2cell_to_polygon geo_simplify_polygons_array geo_union_lines_array geo_union_polygons_array getmonth gettype
  getyear graph gzip_compress_to_base64_string gzip_decompress_from_base64_string has_any_index has_any_ipv4
  has_any_ipv4_prefix has_ipv4 has_ipv4_prefix hash hash_combine hash_many hash_md5 hash_sha1 hash_sha256 hash_xxhash64
  hll hll_if hll_merge hourofday http_request http_request_post identity identity_v3 iff iif indexof indexof_regex
  infer_storage_schema infer_storage_schema_with_suggestions ingestion_time inner_nodes ipv4_compare
  ipv4_is_in_any_range ipv4_is_in_range ipv4_is_match ipv4_is_private ipv4_lookup ipv4_netmask_suffix
  ipv4_range_to_cidr_list ipv6_compare ipv6_is_in_any_range ipv6_is_in_range ipv6_is_match ipv6_lookup isascii isempty
  isfinite isinf isnan isnotempty isnotnull isnull isutf8 jaccard_index labels log log10 log2 loggamma make_bag
  make_bag_if make_datetime make_list make_list_if make_list_with_nulls make_set make_set_if make_timespan map
  materialized_view max max_of maxif merge_tdigest min min_of minif monthofyear mysql_request narrow
  new_activity_metrics new_guid next node_degree_in node_degree_out node_id not now pack_all pack_array
  parse_command_line parse_csv parse_ipv4 parse_ipv4_mask parse_ipv6 parse_ipv6_mask parse_json parse_path parse_url
  parse_urlquery parse_user_agent parse_version parse_xml percentile percentile_tdigest percentiles percentiles_array
  percentiles_array_tdigest percentilesw percentilesw_array percentilew percentrank_tdigest pi pivot pow prev preview
  punycode_domain_from_string punycode_domain_to_string punycode_from_string punycode_to_string python r radians rand
  range rank_tdigest regex_quote repeat replace_regex replace_string replace_strings reverse rolling_percentile round
  row_cumsum row_id row_number row_rank_dense row_rank_min row_window_session rows_near sequence_detect series_abs
  series_acos series_add series_asin series_atan series_ceiling series_cos series_cosine_similarity series_decompose
  series_decompose_anomalies series_decompose_forecast series_divide series_dot_product series_equals series_exp
  series_fft series_fill_backward series_fill_const series_fill_forward series_fill_linear series_fir series_fit_2lines
  series_fit_2lines_dynamic series_fit_line series_fit_line_dynamic series_fit_poly series_floor series_greater
  series_greater_equals series_ifft series_iir series_less series_less_equals series_log series_magnitude
  series_multiply series_not_equals series_outliers series_pearson_correlation series_periods_detect
  series_periods_validate series_pow series_product series_seasonal series_sign series_sin series_stats
  series_stats_dynamic series_subtract series_sum series_tan session_count set_difference set_equals set_has_element
  set_intersect set_union sign sin sliding_window_counts split sql_request sqrt startofday startofmonth startofweek
  startofyear stdev stdevif stdevp stored_query_result strcat strcat_array strcat_delim strcmp string_size strlen strrep
  substring sum sumif table take_any take_anyif tan tdigest tdigest_merge tobool toboolean todatetime todecimal todouble
  todynamic toguid tohex toint tolong tolower toreal tostring totimespan toupper translate treepath trim trim_end
  trim_start unicode_codepoints_from_string unicode_codepoints_to_string unixtime_microseconds_todatetime
  unixtime_milliseconds_todatetime unixtime_nanoseconds_todatetime unixtime_seconds_todatetime url_decode url_encode
  url_encode_component variance varianceif variancep variancepif week_of_year welch_test zip
  zlib_compress_to_base64_string zlib_decompress_from_base64_string
`
  .trim()
  .split(/\s+/);
