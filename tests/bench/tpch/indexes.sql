create index on nation (n_regionkey);
create index on supplier (s_nationkey);
create index on partsupp (ps_suppkey);
create index on customer (c_nationkey);
create index on orders (o_custkey);
create index on lineitem (l_partkey, l_suppkey);
create index on lineitem (l_suppkey);
