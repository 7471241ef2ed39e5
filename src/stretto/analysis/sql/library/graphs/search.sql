-- For each node, the next node of the same parent in the order of sort_key.
create perfetto macro graph_next_sibling(graph_table TableOrSubquery)
returns TableOrSubquery as
(
    select node_id,
        lead(node_id) over (partition by node_parent_id order by sort_key) as next_node_id
    from $graph_table
);
