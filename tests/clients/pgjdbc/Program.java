import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.util.PGobject;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PSQLException;

/** pgjdbc and HikariCP as programs use them. Prints `ok NAME` or `no NAME: WHY`, tab-separated, one line per check, then `end`. */
public final class Program {
    interface Check { void run() throws Exception; }
    interface Use { void of(Connection c) throws Exception; }

    static String environment(String name, String otherwise) {
        return Objects.requireNonNullElse(System.getenv(name), otherwise);
    }

    static final String URL = "jdbc:postgresql://" + environment("PGHOST", "127.0.0.1") + ":" + environment("PGPORT", "5432") + "/"
            + environment("PGDATABASE", "postgres");

    static Connection connect(String... options) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", environment("PGUSER", "postgres"));
        p.setProperty("password", environment("PGPASSWORD", ""));
        p.setProperty("sslmode", "disable");
        for (int i = 0; i < options.length; i += 2) p.setProperty(options[i], options[i + 1]);
        return DriverManager.getConnection(URL, p);
    }

    static void same(Object got, Object wanted) {
        if (!Objects.deepEquals(got, wanted)) throw new AssertionError("got " + show(got) + ", wanted " + show(wanted));
    }

    static String show(Object o) { return o instanceof Object[] ? Arrays.deepToString((Object[]) o) : String.valueOf(o); }

    static SQLException refused(String state, Check c) throws Exception {
        try { c.run(); } catch (SQLException e) {
            same(e.getSQLState(), state);
            return e;
        }
        throw new AssertionError("not refused with " + state);
    }

    static void execute(Connection c, String... statements) throws SQLException {
        try (Statement s = c.createStatement()) { for (String sql : statements) s.execute(sql); }
    }

    static Object one(Connection c, String sql, Object... parameters) throws SQLException {
        try (PreparedStatement s = c.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) s.setObject(i + 1, parameters[i]);
            try (ResultSet r = s.executeQuery()) { r.next(); return r.getObject(1); }
        }
    }

    static List<String> rows(ResultSet r, String... columns) throws SQLException {
        List<String> all = new ArrayList<>();
        while (r.next()) {
            StringBuilder line = new StringBuilder();
            for (String column : columns) line.append(line.length() > 0 ? "|" : "").append(r.getString(column));
            all.add(line.toString());
        }
        return all;
    }

    /** A table of this check's, made before and dropped after. */
    static void table(String columns, Use use) throws Exception {
        try (Connection c = connect()) {
            execute(c, "drop table if exists made cascade", "create table made (" + columns + ")");
            try { use.of(c); } finally {
                try (Connection end = connect()) {
                    if (!c.getAutoCommit()) c.rollback();
                    execute(end, "drop table if exists made cascade");
                }
            }
        }
    }

    static void check(String[] wanted, String name, Check check) {
        if (wanted.length > 0 && Arrays.stream(wanted).noneMatch(name::contains)) return;
        long began = System.nanoTime();
        try {
            check.run();
            System.out.printf("ok\t%s\t%.2f%n", name, (System.nanoTime() - began) / 1e9);
        } catch (Throwable e) {
            String why = (e.getClass().getSimpleName() + ": " + e.getMessage()).replaceAll("\\s+", " ");
            System.out.println("no\t" + name + "\t" + why.substring(0, Math.min(600, why.length())));
            e.printStackTrace();
        }
    }

    public static void main(String[] wanted) throws Exception {
        check(wanted, "login: a wrong password, an unknown role and database", () -> {
            refused("28P01", () -> connect("password", "wrong").close());
            refused("28P01", () -> connect("user", "nobody").close());
            Properties p = new Properties();
            refused("3D000", () -> DriverManager.getConnection(URL.replaceAll("[^/]*$", "nowhere") + "?sslmode=disable", environment("PGUSER", ""),
                    environment("PGPASSWORD", "")).close());
        });
        check(wanted, "login: TLS, verified", () -> {
            String root = System.getenv("PGSSLROOTCERT");
            if (root == null) return;
            try (Connection c = connect("sslmode", "verify-full", "sslrootcert", root)) { same(one(c, "select 1"), 1); }
        });
        check(wanted, "login: TLS, with channel binding", () -> {
            String root = System.getenv("PGSSLROOTCERT");
            if (root == null) return;
            try (Connection c = connect("sslmode", "verify-full", "sslrootcert", root, "channelBinding", "require")) { same(one(c, "select 1"), 1); }
        });
        check(wanted, "login: options, read only, schema and application name", () -> {
            try (Connection c = connect("options", "-c statement_timeout=1234 -c geqo=off", "ApplicationName", "shop", "readOnly", "true", "currentSchema", "pg_catalog")) {
                same(one(c, "show statement_timeout"), "1234ms");
                same(one(c, "show application_name"), "shop");
                same(c.getSchema(), "pg_catalog");
                c.setAutoCommit(false);
                refused("25006", () -> execute(c, "create table public.nothing (a int)"));
                c.rollback();
                c.setClientInfo("ApplicationName", "renamed");
                same(one(c, "select application_name from pg_stat_activity where pid = pg_backend_pid()"), "renamed");
                c.setNetworkTimeout(Executors.newSingleThreadExecutor(r -> { Thread t = new Thread(r); t.setDaemon(true); return t; }), 5000);
                same(c.isValid(5), true);
                same(c.getTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
            }
        });

        for (String mode : new String[] {"text", "binary", "simple"}) {
            check(wanted, "values: of every type, " + mode, () -> {
                String threshold = mode.equals("binary") ? "-1" : "5";
                try (Connection c = mode.equals("simple") ? connect("preferQueryMode", "simple")
                        : connect("prepareThreshold", threshold, "binaryTransfer", String.valueOf(mode.equals("binary")))) {
                    values(c);
                }
            });
        }
        check(wanted, "values: json and jsonb", () -> table("id int, j json, b jsonb", c -> {
            PGobject document = new PGobject();
            document.setType("jsonb");
            document.setValue("{\"a\": [1, null], \"b\": \"\u20ac\"}");
            try (PreparedStatement s = c.prepareStatement("insert into made values (?, ?::json, ?)")) {
                s.setInt(1, 1);
                s.setString(2, "{\"k\":1}");
                s.setObject(3, document);
                s.executeUpdate();
            }
            same(one(c, "select b->>'b' from made where b @> '{\"a\": [1]}'"), "\u20ac");
            same(((PGobject) one(c, "select b from made")).getValue(), document.getValue());
            same(one(c, "select j::text from made"), "{\"k\":1}");
            // ?? is the driver's way to write the operator ?.
            same(one(c, "select b ?? 'a' from made"), true);
        }));
        check(wanted, "values: an enum", () -> {
            try (Connection c = connect()) {
                execute(c, "drop table if exists m; drop type if exists mood", "create type mood as enum ('sad', 'happy')", "create table m (v mood)");
                try (PreparedStatement s = c.prepareStatement("insert into m values (?::mood)")) {
                    s.setString(1, "happy");
                    s.executeUpdate();
                    s.setObject(1, "sad", Types.OTHER);
                    s.executeUpdate();
                }
                same(one(c, "select v from m order by v"), "sad");
                execute(c, "drop table m", "drop type mood");
            }
        });
        check(wanted, "values: large ones, streamed in and out", () -> table("id int, raw bytea, v text", c -> {
            byte[] raw = new byte[16 << 20];
            new java.util.Random(7).nextBytes(raw);
            String text = "x\u00e9".repeat(8 << 20);
            try (PreparedStatement s = c.prepareStatement("insert into made values (1, ?, ?)")) {
                s.setBinaryStream(1, new ByteArrayInputStream(raw), raw.length);
                s.setCharacterStream(2, new StringReader(text), text.length());
                s.executeUpdate();
            }
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("select raw, v from made")) {
                r.next();
                same(Arrays.equals(r.getBytes(1), raw), true);
                same(r.getString(2).equals(text), true);
            }
        }));

        check(wanted, "prepared: named on the server after five uses, closed after", () -> table("id int primary key, v text", c -> {
            try (PreparedStatement s = c.prepareStatement("insert into made values (?, ?)")) {
                for (int i = 0; i < 20; i++) { s.setInt(1, i); s.setString(2, "v" + i); same(s.executeUpdate(), 1); }
            }
            for (int i = 0; i < 20; i++) same(one(c, "select v from made where id = ?", i), "v" + i);
            same((Long) one(c, "select count(*) from pg_prepared_statements where name like 'S_%'") >= 2, true);
        }));
        check(wanted, "prepared: a cached one outlives DDL", () -> table("id int primary key, v text", c -> {
            execute(c, "insert into made values (1, 'a')");
            for (int i = 0; i < 10; i++) same(one(c, "select * from made where id = ?", 1), 1);
            try (Connection other = connect()) { execute(other, "alter table made add w int default 7"); }
            try (PreparedStatement s = c.prepareStatement("select * from made where id = ?")) {
                s.setInt(1, 1);
                try (ResultSet r = s.executeQuery()) { r.next(); same(r.getInt("w"), 7); }
            }
        }));
        check(wanted, "prepared: metadata of parameters and of results", () -> table("id bigint primary key, v varchar(9), n numeric(7,2), at timestamptz", c -> {
            try (PreparedStatement s = c.prepareStatement("select id, v as word, n, at from made where id = ? and v = ? and at < ?")) {
                ParameterMetaData p = s.getParameterMetaData();
                same(List.of(p.getParameterTypeName(1), p.getParameterTypeName(2), p.getParameterTypeName(3)), List.of("int8", "text", "timestamptz"));
                ResultSetMetaData m = s.getMetaData();
                same(m.getColumnName(2), "word");
                same(m.getColumnLabel(2), "word");
                same(m.getTableName(2), "made");
                same(m.isNullable(1), ResultSetMetaData.columnNoNulls);
                same(m.getPrecision(3), 7);
                same(m.getScale(3), 2);
                same(m.getPrecision(2), 9);
                same(m.isAutoIncrement(1), false);
            }
        }));

        check(wanted, "rows: many, by fetch size", () -> {
            try (Connection c = connect()) {
                c.setAutoCommit(false);
                try (PreparedStatement s = c.prepareStatement("select i, repeat('x', 50) from generate_series(1, ?) i")) {
                    s.setFetchSize(500);
                    s.setInt(1, 100_000);
                    long sum = 0;
                    try (ResultSet r = s.executeQuery()) { while (r.next()) sum += r.getInt(1); }
                    same(sum, 100_000L * 100_001 / 2);
                    s.setMaxRows(10);
                    try (ResultSet r = s.executeQuery()) { int n = 0; while (r.next()) n++; same(n, 10); }
                }
                c.rollback();
            }
        });
        check(wanted, "rows: fetched from one while others run", () -> table("id int primary key", c -> {
            execute(c, "insert into made select generate_series(1, 1000)");
            c.setAutoCommit(false);
            try (PreparedStatement s = c.prepareStatement("select id from made order by id"); PreparedStatement u = c.prepareStatement("update made set id = -id where id = ?")) {
                s.setFetchSize(10);
                int n = 0;
                try (ResultSet r = s.executeQuery()) { while (r.next()) { u.setInt(1, r.getInt(1)); same(u.executeUpdate(), 1); n++; } }
                same(n, 1000);
            }
            c.commit();
            same(one(c, "select count(*) from made where id < 0"), 1000L);
            c.commit();
        }));
        check(wanted, "rows: an updatable, scrollable result", () -> table("id int primary key, v text", c -> {
            execute(c, "insert into made select i, 'v' || i from generate_series(1, 5) i");
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE); ResultSet r = s.executeQuery("select id, v from made order by id")) {
                r.absolute(3);
                r.updateString("v", "changed");
                r.updateRow();
                r.last();
                r.deleteRow();
                r.moveToInsertRow();
                r.updateInt("id", 9);
                r.updateString("v", "new");
                r.insertRow();
            }
            same(one(c, "select string_agg(id || v, ',' order by id) from made"), "1v1,2v2,3changed,4v4,9new");
        }));
        check(wanted, "rows: keys that were generated, counts, several results", () -> table("id bigint generated always as identity primary key, v text", c -> {
            try (PreparedStatement s = c.prepareStatement("insert into made (v) values (?)", Statement.RETURN_GENERATED_KEYS)) {
                s.setString(1, "a");
                s.executeUpdate();
                try (ResultSet r = s.getGeneratedKeys()) { r.next(); same(r.getLong("id"), 1L); same(r.getString("v"), "a"); }
            }
            try (PreparedStatement s = c.prepareStatement("insert into made (v) values (?)", new String[] {"id"})) {
                s.setString(1, "b");
                s.executeUpdate();
                try (ResultSet r = s.getGeneratedKeys()) { r.next(); same(r.getLong(1), 2L); }
            }
            try (Statement s = c.createStatement()) {
                same(s.execute("select 1; update made set v = 'c'; select 2"), true);
                same(s.getMoreResults(), false);
                same(s.getUpdateCount(), 2);
                same(s.getMoreResults(), true);
            }
        }));
        check(wanted, "batch: of one statement, rewritten and with keys", () -> table("id serial primary key, v int unique", c -> {
            for (String rewrite : new String[] {"false", "true"}) {
                try (Connection b = connect("reWriteBatchedInserts", rewrite)) {
                    execute(b, "truncate made restart identity");
                    b.setAutoCommit(false);
                    try (PreparedStatement s = b.prepareStatement("insert into made (v) values (?)", Statement.RETURN_GENERATED_KEYS)) {
                        for (int i = 0; i < 1000; i++) { s.setInt(1, i); s.addBatch(); }
                        int[] counts = s.executeBatch();
                        same(counts.length, 1000);
                        int n = 0;
                        try (ResultSet r = s.getGeneratedKeys()) { while (r.next()) same(r.getInt(1), ++n); }
                        same(n, 1000);
                    }
                    try (PreparedStatement s = b.prepareStatement("insert into made (v) values (?)")) {
                        for (int i = 5000; i < 6000; i++) { s.setInt(1, i); s.addBatch(); }
                        same(s.executeBatch().length, 1000);
                    }
                    b.commit();
                    same(one(b, "select count(*) from made"), 2000L);
                    b.commit();
                }
            }
        }));
        check(wanted, "batch: an error in the middle", () -> table("id int primary key", c -> {
            try (PreparedStatement s = c.prepareStatement("insert into made values (?)")) {
                for (int i : new int[] {1, 2, 1, 3}) { s.setInt(1, i); s.addBatch(); }
                try { s.executeBatch(); throw new AssertionError("no error"); } catch (BatchUpdateException e) { same(e.getSQLState(), "23505"); }
            }
            same((Long) one(c, "select count(*) from made") <= 2, true);
            execute(c, "truncate made");
            try (Statement s = c.createStatement()) {
                s.addBatch("insert into made values (7), (8)");
                s.addBatch("update made set id = id + 10");
                s.addBatch("delete from made where id = 17");
                same(s.executeBatch(), new int[] {2, 2, 1});
            }
        }));

        check(wanted, "transactions: savepoints, isolation, retry", () -> table("id int primary key, v int", c -> {
            c.setAutoCommit(false);
            execute(c, "insert into made values (1, 0)");
            Savepoint named = c.setSavepoint("a");
            execute(c, "insert into made values (2, 0)");
            refused("23505", () -> execute(c, "insert into made values (1, 0)"));
            refused("25P02", () -> execute(c, "select 1"));
            c.rollback(named);
            Savepoint unnamed = c.setSavepoint();
            execute(c, "insert into made values (3, 0)");
            c.releaseSavepoint(unnamed);
            c.commit();
            same(one(c, "select string_agg(id::text, ',' order by id) from made"), "1,3");
            c.commit();
            c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            int tries = 0;
            try (Connection other = connect()) {
                while (true) {
                    tries++;
                    try {
                        int v = (Integer) one(c, "select v from made where id = 1");
                        if (tries == 1) execute(other, "update made set v = v + 10 where id = 1");
                        try (PreparedStatement s = c.prepareStatement("update made set v = ? where id = 1")) { s.setInt(1, v + 1); s.executeUpdate(); }
                        c.commit();
                        break;
                    } catch (SQLException e) {
                        same(e.getSQLState(), "40001");
                        c.rollback();
                    }
                }
                same(tries, 2);
                same(one(other, "select v from made where id = 1"), 11);
            }
        }));
        check(wanted, "transactions: serializable", () -> table("id int primary key, v int", c -> {
            execute(c, "insert into made values (1, 1), (2, 1)");
            try (Connection other = connect()) {
                for (Connection x : new Connection[] {c, other}) {
                    x.setAutoCommit(false);
                    x.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                    one(x, "select sum(v) from made");
                }
                execute(c, "update made set v = 0 where id = 1");
                c.commit();
                refused("40001", () -> { execute(other, "update made set v = 0 where id = 2"); other.commit(); });
                other.rollback();
            }
        }));
        check(wanted, "transactions: autosave behind each statement", () -> table("id int primary key", m -> {
            for (String autosave : new String[] {"always", "conservative"}) {
                try (Connection c = connect("autosave", autosave, "cleanupSavepoints", "true")) {
                    c.setAutoCommit(false);
                    execute(c, "delete from made", "insert into made values (1)");
                    try { one(c, "select 1 / ?", 0); } catch (SQLException e) { same(e.getSQLState(), "22012"); }
                    if (autosave.equals("always")) { execute(c, "insert into made values (2)"); c.commit(); same(one(m, "select count(*) from made"), 2L); }
                    else c.rollback();
                }
            }
        }));
        check(wanted, "copy: in and out, text, CSV and binary", () -> table("id int, v text, n numeric", c -> {
            CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
            StringBuilder data = new StringBuilder("id,v,n\n");
            for (int i = 0; i < 20_000; i++) data.append(i).append(",\"v, ").append(i).append("\",").append(i).append(".25\n");
            same(copy.copyIn("copy made from stdin (format csv, header)", new StringReader(data.toString())), 20_000L);
            StringWriter out = new StringWriter();
            same(copy.copyOut("copy (select * from made order by id) to stdout (format csv, header, force_quote (v))", out), 20_000L);
            same(out.toString().equals(data.toString()), true);
            java.io.ByteArrayOutputStream binary = new java.io.ByteArrayOutputStream();
            copy.copyOut("copy made to stdout (format binary)", binary);
            execute(c, "truncate made");
            same(copy.copyIn("copy made from stdin (format binary)", new ByteArrayInputStream(binary.toByteArray())), 20_000L);
            PSQLException e = (PSQLException) refused("22P02", () -> copy.copyIn("copy made from stdin", new StringReader("1\tx\tnot a number\n")));
            same(e.getServerErrorMessage().getWhere(), "COPY made, line 1, column n: \"not a number\"");
            org.postgresql.copy.CopyIn given = copy.copyIn("copy made from stdin");
            given.writeToCopy("1\tx\t1\n".getBytes(StandardCharsets.UTF_8), 0, 6);
            given.cancelCopy();
            same(one(c, "select count(*) from made"), 20_000L);
        }));
        check(wanted, "notify: between two connections", () -> {
            try (Connection a = connect(); Connection b = connect()) {
                execute(a, "listen news");
                execute(b, "notify news, 'one'");
                org.postgresql.PGNotification[] got = a.unwrap(PGConnection.class).getNotifications(5000);
                same(got != null && got.length == 1 && got[0].getParameter().equals("one"), true);
            }
        });
        check(wanted, "notices: as warnings", () -> {
            try (Connection c = connect(); Statement s = c.createStatement()) {
                s.execute("drop table if exists never_was");
                same(s.getWarnings().getMessage(), "table \"never_was\" does not exist, skipping");
                same(s.getWarnings().getSQLState(), "00000");
            }
        });
        check(wanted, "functions: a DO block and a function of one's own", () -> {
            try (Connection c = connect()) {
                execute(c, "do $$ begin perform 1; end $$");
                execute(c, "create or replace function twice(a int) returns int language sql as 'select a * 2'");
                try (CallableStatement s = c.prepareCall("{? = call twice(?)}")) {
                    s.registerOutParameter(1, Types.INTEGER);
                    s.setInt(2, 21);
                    s.execute();
                    same(s.getInt(1), 42);
                }
                execute(c, "drop function twice");
            }
        });
        check(wanted, "functions: built-in ones called by escapes", () -> {
            try (Connection c = connect()) {
                try (CallableStatement s = c.prepareCall("{? = call upper(?)}")) {
                    s.registerOutParameter(1, Types.VARCHAR);
                    s.setString(2, "x");
                    s.execute();
                    same(s.getString(1), "X");
                }
                same(one(c, "select {fn ucase('a')} || {fn concat('b', 'c')}"), "Abc");
                same(String.valueOf(one(c, "select {d '2024-02-29'}")), "2024-02-29");
                same(one(c, "select {fn timestampdiff(SQL_TSI_DAY, {ts '2024-01-01 00:00:00'}, {ts '2024-01-03 00:00:00'})}").toString().startsWith("2"), true);
            }
        });
        check(wanted, "cancel: by another thread, by setQueryTimeout, by the server's timeout", () -> {
            try (Connection c = connect(); Statement s = c.createStatement()) {
                Thread canceller = new Thread(() -> { try { Thread.sleep(300); s.cancel(); } catch (Exception e) { e.printStackTrace(); } });
                canceller.start();
                refused("57014", () -> s.execute("select count(*) from generate_series(1, 100000000000)"));
                canceller.join();
                s.setQueryTimeout(1);
                refused("57014", () -> s.execute("select pg_sleep(60)"));
                s.setQueryTimeout(0);
                s.execute("set statement_timeout = 200");
                refused("57014", () -> s.execute("select pg_sleep(60)"));
                s.execute("select 1");
            }
        });
        check(wanted, "errors: fields", () -> table("id int primary key, n int check (n > 0), p int references made", c -> {
            execute(c, "insert into made values (1, 1, null)");
            for (Object[] wrong : new Object[][] {
                {"select nosuch from made", "42703", 8, null}, {"insert into made values (1, 1, 1)", "23505", 0, "made_pkey"}, {"insert into made values (2, 0, 1)", "23514", 0, "made_n_check"},
                {"insert into made values (2, 1, 5)", "23503", 0, "made_p_fkey"}, {"selec 1", "42601", 1, null}, {"select * from nosuch", "42P01", 15, null}}) {
                PSQLException e = (PSQLException) refused((String) wrong[1], () -> execute(c, (String) wrong[0]));
                same(e.getServerErrorMessage().getPosition(), wrong[2]);
                same(e.getServerErrorMessage().getConstraint(), wrong[3]);
                if (wrong[3] != null) same(e.getServerErrorMessage().getTable(), "made");
            }
        }));
        check(wanted, "catalog: tables, columns, keys and indexes", () -> {
            try (Connection c = connect()) {
                execute(c, "drop schema if exists shop_j cascade", "create schema shop_j",
                        "create table shop_j.customer (id serial primary key, name varchar(40) not null, mail text unique, balance numeric(10,2) default 0, tags text[])",
                        "create table shop_j.orders (id bigint generated always as identity primary key, customer int not null references shop_j.customer on delete cascade, note text)",
                        "create index orders_note on shop_j.orders (note desc, id)", "comment on table shop_j.customer is 'who buys'");
                DatabaseMetaData m = c.getMetaData();
                same(m.getDatabaseMajorVersion() >= 18, true);
                same(m.getMaxColumnNameLength(), 63);
                same(m.getDefaultTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
                same(new TreeSet<>(rows(m.getSchemas(), "TABLE_SCHEM")).containsAll(List.of("public", "shop_j", "pg_catalog", "information_schema")), true);
                same(rows(m.getTables(null, "shop_j", "%", new String[] {"TABLE"}), "TABLE_NAME", "TABLE_TYPE", "REMARKS"), List.of("customer|TABLE|who buys", "orders|TABLE|null"));
                same(rows(m.getColumns(null, "shop_j", "customer", "%"), "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF", "IS_AUTOINCREMENT", "ORDINAL_POSITION"),
                        List.of("id|serial|10|0|0|nextval('shop_j.customer_id_seq'::regclass)|YES|1", "name|varchar|40|0|0|null|NO|2", "mail|text|2147483647|0|1|null|NO|3",
                                "balance|numeric|10|2|1|0|NO|4", "tags|_text|2147483647|0|1|null|NO|5"));
                same(rows(m.getPrimaryKeys(null, "shop_j", "orders"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"), List.of("id|1|orders_pkey"));
                same(rows(m.getImportedKeys(null, "shop_j", "orders"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "FK_NAME", "DELETE_RULE"),
                        List.of("customer|id|customer|orders_customer_fkey|0"));
                same(rows(m.getExportedKeys(null, "shop_j", "customer"), "FKTABLE_NAME"), List.of("orders"));
                same(rows(m.getIndexInfo(null, "shop_j", "orders", false, true), "INDEX_NAME", "NON_UNIQUE", "COLUMN_NAME", "ORDINAL_POSITION", "ASC_OR_DESC"),
                        List.of("orders_pkey|f|id|1|A", "orders_note|t|note|1|D", "orders_note|t|id|2|A"));
                same(rows(m.getBestRowIdentifier(null, "shop_j", "orders", DatabaseMetaData.bestRowSession, false), "COLUMN_NAME"), List.of("id"));
                same(rows(m.getTableTypes(), "TABLE_TYPE").contains("MATERIALIZED VIEW"), true);
                same(rows(m.getTables(null, "shop_j", "%", new String[] {"SEQUENCE", "INDEX"}), "TABLE_NAME").size(), 6);
                execute(c, "drop schema shop_j cascade");
            }
        });
        check(wanted, "catalog: types, functions, privileges and settings", () -> {
            try (Connection c = connect()) {
                DatabaseMetaData m = c.getMetaData();
                same(rows(m.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "text", "jsonb", "timestamptz")), true);
                same(rows(m.getFunctions(null, "pg_catalog", "upper"), "FUNCTION_NAME").isEmpty(), false);
                same(rows(m.getFunctionColumns(null, "pg_catalog", "lower", "%"), "COLUMN_NAME").isEmpty(), false);
                same(rows(m.getProcedures(null, "public", "%"), "PROCEDURE_NAME").isEmpty(), true);
                same(rows(m.getCatalogs(), "TABLE_CAT").contains(environment("PGDATABASE", "postgres")), true);
                same(rows(m.getClientInfoProperties(), "NAME"), List.of("ApplicationName"));
                same(m.getUserName(), environment("PGUSER", "postgres"));
                same(m.getNumericFunctions().contains("abs"), true);
                same(rows(m.getUDTs(null, "nowhere", "%", null), "TYPE_NAME").isEmpty(), true);
                execute(c, "drop table if exists made cascade", "create table made (id int primary key)");
                same(rows(m.getTablePrivileges(null, "public", "made"), "GRANTEE").contains(environment("PGUSER", "postgres")), true);
                same(rows(m.getColumnPrivileges(null, "public", "made", "%"), "GRANTEE").isEmpty(), false);
                same(rows(m.getVersionColumns(null, "public", "made"), "COLUMN_NAME"), List.of("ctid"));
                execute(c, "drop table made");
            }
        });
        check(wanted, "pool: shared by threads, lost connections replaced", () -> table("n int", c -> {
            execute(c, "insert into made values (0)");
            HikariConfig config = new HikariConfig();
            config.setJdbcUrl(URL + "?sslmode=disable");
            config.setUsername(environment("PGUSER", "postgres"));
            config.setPassword(environment("PGPASSWORD", ""));
            config.setMaximumPoolSize(6);
            config.setAutoCommit(false);
            config.setTransactionIsolation("TRANSACTION_READ_COMMITTED");
            config.setConnectionInitSql("set work_mem = '8MB'");
            config.setConnectionTestQuery("select 1");
            try (HikariDataSource pool = new HikariDataSource(config)) {
                var threads = Executors.newFixedThreadPool(12);
                var done = new ArrayList<java.util.concurrent.Future<?>>();
                for (int t = 0; t < 12; t++) done.add(threads.submit(() -> {
                    for (int i = 0; i < 25; i++) {
                        try (Connection mine = pool.getConnection()) {
                            execute(mine, "update made set n = n + 1");
                            mine.commit();
                        }
                    }
                    return null;
                }));
                for (var d : done) d.get(60, TimeUnit.SECONDS);
                threads.shutdown();
                same(one(c, "select n from made"), 300);
                execute(c, "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'PostgreSQL JDBC%' and pid <> pg_backend_pid()");
                Thread.sleep(700); // longer than the pool trusts a connection it has just used
                for (int i = 0; i < 10; i++) try (Connection mine = pool.getConnection()) { same(one(mine, "select 1"), 1); mine.rollback(); }
            }
        }));
        System.out.println("end");
    }

    static void values(Connection c) throws Exception {
        Object[][] values = {
            {"int2", 7, 7}, {"int4", Integer.MIN_VALUE, Integer.MIN_VALUE}, {"int8", Long.MAX_VALUE, Long.MAX_VALUE}, {"float4", 1.5f, 1.5f}, {"float8", 0.1, 0.1},
            {"numeric", new BigDecimal("12345678901234567890.123456789"), new BigDecimal("12345678901234567890.123456789")}, {"numeric", new BigDecimal("-0.00001"), new BigDecimal("-0.00001")},
            {"numeric", new BigDecimal("100000"), new BigDecimal("100000")}, {"bool", true, true}, {"text", "h\u00e9'llo \\ \n\u20ac", "h\u00e9'llo \\ \n\u20ac"}, {"varchar", "", ""},
            {"date", LocalDate.of(2024, 2, 29), Date.valueOf("2024-02-29")}, {"time", LocalTime.of(12, 34, 56), Time.valueOf("12:34:56")},
            {"timestamp", LocalDateTime.of(2024, 2, 29, 12, 34, 56, 123456000), Timestamp.valueOf("2024-02-29 12:34:56.123456")},
            {"uuid", UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")},
            {"bytea", new byte[] {0, -1, 39, 92}, new byte[] {0, -1, 39, 92}}};
        for (int round = 0; round < 7; round++) { // past the threshold at which the driver prepares and turns to binary
            for (Object[] v : values) {
                try (PreparedStatement s = c.prepareStatement("select ?::" + v[0] + " as v")) {
                    s.setObject(1, v[1]);
                    try (ResultSet r = s.executeQuery()) { r.next(); same(r.getObject(1), v[2]); }
                    s.setNull(1, Types.NULL);
                    try (ResultSet r = s.executeQuery()) { r.next(); same(r.getObject(1), null); same(r.wasNull(), true); }
                }
            }
            try (PreparedStatement s = c.prepareStatement("select ?::timestamptz as at, ?::int[] as a, ?::text[] as t, 'NaN'::float8 as nan, interval '1 mon 2 days 3.5 seconds' as i, ?::timetz, array[1.5, null]::numeric[] as n")) {
                OffsetDateTime at = OffsetDateTime.of(2024, 2, 29, 12, 0, 0, 0, ZoneOffset.UTC);
                s.setObject(1, at);
                s.setArray(2, c.createArrayOf("int4", new Integer[] {1, null, 3}));
                s.setArray(3, c.createArrayOf("text", new String[] {"a", null, "q\"\\,{}", "", "NULL"}));
                s.setObject(4, "01:02:03+02");
                try (ResultSet r = s.executeQuery()) {
                    r.next();
                    same(r.getObject("at", OffsetDateTime.class).toInstant(), at.toInstant());
                    same(r.getArray("a").getArray(), new Integer[] {1, null, 3});
                    same(r.getArray("t").getArray(), new String[] {"a", null, "q\"\\,{}", "", "NULL"});
                    same(Double.isNaN(r.getDouble("nan")), true);
                    same(((PGInterval) r.getObject("i")).getValue(), "0 years 1 mons 2 days 0 hours 0 mins 3.5 secs");
                    same(r.getArray("n").getArray(), new BigDecimal[] {new BigDecimal("1.5"), null});
                }
            }
            try (PreparedStatement s = c.prepareStatement("select i from generate_series(1, 5) i where i = any(?)")) {
                s.setArray(1, c.createArrayOf("int4", new Integer[] {2, 9}));
                try (ResultSet r = s.executeQuery()) { r.next(); same(r.getInt(1), 2); same(r.next(), false); }
            }
        }
    }
}
