import jakarta.persistence.*;
import java.io.File;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.*;
import java.util.function.Consumer;
import java.util.stream.Stream;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.compare.CompareControl;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import org.flowable.engine.ProcessEngine;
import org.flowable.engine.ProcessEngineConfiguration;
import org.flowable.engine.impl.cfg.StandaloneProcessEngineConfiguration;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.Record;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.codegen.GenerationTool;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;
import org.jooq.meta.jaxb.Generator;
import org.jooq.meta.jaxb.Jdbc;
import org.jooq.meta.jaxb.Target;

/**
 * Hibernate, Liquibase, Flowable and jOOQ as programs use them: each makes its tables, reads the catalogs for what is there, and works.
 * Prints `ok NAME` or `no NAME: WHY`, tab-separated, one line per check, then `end`.
 */
public final class Program {
    interface Check { void run() throws Exception; }

    static final String USER = environment("PGUSER", "postgres");
    static final String PASSWORD = environment("PGPASSWORD", "");

    static String environment(String name, String otherwise) {
        return Objects.requireNonNullElse(System.getenv(name), otherwise);
    }

    static String url(String schema) {
        return "jdbc:postgresql://" + environment("PGHOST", "127.0.0.1") + ":" + environment("PGPORT", "5432") + "/"
                + environment("PGDATABASE", "postgres") + "?sslmode=disable&currentSchema=" + schema;
    }

    static Connection connect(String schema) throws SQLException {
        return DriverManager.getConnection(url(schema), USER, PASSWORD);
    }

    static void execute(Connection c, String... statements) throws SQLException {
        try (Statement s = c.createStatement()) { for (String sql : statements) s.execute(sql); }
    }

    static void same(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) throw new AssertionError("got " + got + ", wanted " + wanted);
    }

    /** An empty schema of this name, dropped afterwards. */
    static void in(String schema, Check run) throws Exception {
        try (Connection c = connect("public")) { execute(c, "drop schema if exists " + schema + " cascade", "create schema " + schema); }
        try { run.run(); } finally {
            try (Connection c = connect("public")) { execute(c, "drop schema if exists " + schema + " cascade"); }
        }
    }

    // Hibernate

    public enum Mood { CALM, LOUD }

    @Entity(name = "Author") @jakarta.persistence.Table(name = "author", uniqueConstraints = @UniqueConstraint(columnNames = "mail"))
    public static class Author {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false, length = 80) String mail;
        @Enumerated(EnumType.STRING) Mood mood;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, String> facts = new TreeMap<>();
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Book> books = new ArrayList<>();
        @Version int version;
    }

    @Entity(name = "Book") @jakarta.persistence.Table(name = "book", indexes = @jakarta.persistence.Index(columnList = "title"))
    public static class Book {
        @Id @GeneratedValue UUID id;
        @Column(nullable = false) String title;
        @Column(precision = 12, scale = 2) BigDecimal price;
        OffsetDateTime at;
        byte[] cover;
        @JdbcTypeCode(SqlTypes.ARRAY) String[] tags;
        @ManyToOne(fetch = FetchType.LAZY, optional = false) Author author;
    }

    @Entity(name = "Counter") @jakarta.persistence.Table(name = "counter")
    public static class Counter {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        long n;
    }

    static SessionFactory hibernate(String schema, String action) {
        Configuration c = new Configuration().addAnnotatedClass(Author.class).addAnnotatedClass(Book.class).addAnnotatedClass(Counter.class);
        c.setProperty("hibernate.connection.url", url(schema)).setProperty("hibernate.connection.username", USER);
        c.setProperty("hibernate.connection.password", PASSWORD).setProperty("hibernate.hbm2ddl.auto", action);
        c.setProperty("hibernate.hbm2ddl.halt_on_error", "true").setProperty("hibernate.jdbc.batch_size", "20");
        return c.buildSessionFactory();
    }

    static void work(SessionFactory factory, Consumer<Session> work) {
        factory.inTransaction(work);
    }

    static void hibernateWorks() throws Exception {
        in("hibernate_checks", () -> {
            try (SessionFactory made = hibernate("hibernate_checks", "create")) {
                work(made, s -> {
                    Author a = new Author();
                    a.mail = "ada@example.org";
                    a.mood = Mood.LOUD;
                    a.facts.put("born", "1815");
                    for (int i = 0; i < 30; i++) {
                        Book b = new Book();
                        b.title = "volume " + i;
                        b.price = new BigDecimal("10.25").add(BigDecimal.valueOf(i));
                        b.at = OffsetDateTime.of(2024, 1, 1 + i % 28, 0, 0, 0, 0, ZoneOffset.UTC);
                        b.cover = new byte[] {1, 2, (byte) i};
                        b.tags = new String[] {"a", "b" + i};
                        b.author = a;
                        a.books.add(b);
                    }
                    s.persist(a);
                    for (int i = 0; i < 120; i++) s.persist(new Counter());
                });
                work(made, s -> {
                    Author a = s.createSelectionQuery("from Author a join fetch a.books where a.mail like :m", Author.class)
                            .setParameter("m", "ada%").getSingleResult();
                    same(a.books.size(), 30);
                    same(a.facts.get("born"), "1815");
                    same(s.createSelectionQuery("select count(*) from Counter", Long.class).getSingleResult(), 120L);
                    same(s.createSelectionQuery("select sum(b.price) from Book b", BigDecimal.class).getSingleResult(), new BigDecimal("742.50"));
                    List<Book> page = s.createSelectionQuery("from Book b order by b.price desc", Book.class).setFirstResult(5).setMaxResults(3).list();
                    same(page.get(0).title, "volume 24");
                    same(page.get(0).tags[1], "b24");
                    a.books.remove(0);
                });
                work(made, s -> {
                    same(s.createMutationQuery("update Book set price = price + 1 where price > 20").executeUpdate() > 0, true);
                    same(s.createSelectionQuery("select count(*) from Book", Long.class).getSingleResult(), 29L);
                    Author locked = s.find(Author.class, 1L, LockModeType.PESSIMISTIC_WRITE);
                    locked.mood = Mood.CALM;
                });
            }
            try (SessionFactory valid = hibernate("hibernate_checks", "validate")) {
                same(valid.fromTransaction(s -> s.find(Author.class, 1L).mood), Mood.CALM);
            }
        });
    }

    static void hibernateUpdates() throws Exception {
        in("hibernate_checks", () -> {
            hibernate("hibernate_checks", "create-only").close();
            try (Connection c = connect("hibernate_checks")) { execute(c, "alter table book drop column tags", "drop table counter"); }
            hibernate("hibernate_checks", "update").close();
            hibernate("hibernate_checks", "validate").close();
        });
    }

    // Liquibase

    static final String CHANGES = """
            <databaseChangeLog xmlns="http://www.liquibase.org/xml/ns/dbchangelog" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
              xsi:schemaLocation="http://www.liquibase.org/xml/ns/dbchangelog http://www.liquibase.org/xml/ns/dbchangelog/dbchangelog-latest.xsd">
              <changeSet id="1" author="a"><createTable tableName="person"><column name="id" type="bigint" autoIncrement="true">
                <constraints primaryKey="true" nullable="false"/></column><column name="name" type="varchar(40)" defaultValue="x">
                <constraints nullable="false" unique="true" uniqueConstraintName="person_name_key"/></column>
                <column name="born" type="timestamp with time zone"/></createTable></changeSet>
              <changeSet id="2" author="a"><createTable tableName="pet"><column name="id" type="uuid"><constraints primaryKey="true"/></column>
                <column name="owner" type="bigint"/></createTable>
                <addForeignKeyConstraint baseTableName="pet" baseColumnNames="owner" constraintName="pet_owner" referencedTableName="person"
                  referencedColumnNames="id" onDelete="CASCADE"/><createIndex tableName="pet" indexName="pet_by_owner"><column name="owner"/></createIndex>
              </changeSet>
              <changeSet id="3" author="a"><preConditions onFail="MARK_RAN"><tableExists tableName="person"/></preConditions>
                <addColumn tableName="person"><column name="age" type="int"/></addColumn>
                <modifyDataType tableName="person" columnName="name" newDataType="varchar(80)"/>
                <renameColumn tableName="person" oldColumnName="age" newColumnName="years" columnDataType="int"/>
                <addNotNullConstraint tableName="person" columnName="years" columnDataType="int" defaultNullValue="1"/>
                <insert tableName="person"><column name="name" value="ada"/><column name="years" valueNumeric="36"/></insert></changeSet>
              <changeSet id="4" author="a"><createView viewName="grown">select id, name from person where years > 17</createView>
                <createSequence sequenceName="tickets" startValue="5"/></changeSet>
            </databaseChangeLog>
            """;

    static void liquibaseWorks() throws Exception {
        Path directory = Files.createTempDirectory("changes");
        Files.writeString(directory.resolve("changes.xml"), CHANGES);
        in("liquibase_checks", () -> {
            try (Connection c = connect("liquibase_checks")) {
                Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(c));
                database.setDefaultSchemaName("liquibase_checks");
                Liquibase liquibase = new Liquibase("changes.xml", new DirectoryResourceAccessor(directory), database);
                liquibase.update(new Contexts());
                same(liquibase.listUnrunChangeSets(new Contexts(), new LabelExpression()).size(), 0);
                liquibase.tag("made");
                liquibase.update(new Contexts());
                DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance()
                        .createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database));
                Set<String> tables = new TreeSet<>();
                for (liquibase.structure.core.Table t : snapshot.get(liquibase.structure.core.Table.class)) tables.add(t.getName());
                same(tables, new TreeSet<>(List.of("databasechangelog", "databasechangeloglock", "person", "pet")));
                same(snapshot.get(liquibase.structure.core.ForeignKey.class).size(), 1);
                same(snapshot.get(liquibase.structure.core.View.class).size(), 1);
                liquibase.rollback(1, (String) null, new Contexts(), new LabelExpression());
                same(liquibase.listUnrunChangeSets(new Contexts(), new LabelExpression()).size(), 1);
                // What has run is kept by the object; another one reads the table.
                Liquibase again = new Liquibase("changes.xml", new DirectoryResourceAccessor(directory), database);
                again.update(new Contexts());
                again.dropAll();
            }
        });
    }

    // Flowable

    static final String PROCESS = """
            <definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="checks">
              <process id="leave" isExecutable="true"><startEvent id="s"/><sequenceFlow id="a" sourceRef="s" targetRef="t"/>
              <userTask id="t" name="Approve"/><sequenceFlow id="b" sourceRef="t" targetRef="e"/><endEvent id="e"/></process></definitions>
            """;

    static void flowableWorks() throws Exception {
        in("flowable_checks", () -> {
            for (String action : List.of(ProcessEngineConfiguration.DB_SCHEMA_UPDATE_TRUE, ProcessEngineConfiguration.DB_SCHEMA_UPDATE_FALSE)) {
                ProcessEngineConfiguration configuration = new StandaloneProcessEngineConfiguration().setJdbcUrl(url("flowable_checks"))
                        .setJdbcUsername(USER).setJdbcPassword(PASSWORD).setJdbcDriver("org.postgresql.Driver").setDatabaseSchemaUpdate(action);
                configuration.setDatabaseSchema("flowable_checks");
                ProcessEngine engine = configuration.buildProcessEngine();
                engine.getRepositoryService().createDeployment().addString("leave.bpmn20.xml", PROCESS).deploy();
                for (int i = 0; i < 5; i++) engine.getRuntimeService().startProcessInstanceByKey("leave", Map.of("days", i, "who", "ada"));
                same(engine.getTaskService().createTaskQuery().processVariableValueGreaterThan("days", 2).count(), 2L);
                engine.getTaskService().createTaskQuery().list().forEach(task -> engine.getTaskService().complete(task.getId()));
                same(engine.getRuntimeService().createProcessInstanceQuery().count(), 0L);
                same(engine.getHistoryService().createHistoricProcessInstanceQuery().finished().count() % 5, 0L);
                engine.close();
            }
        });
    }

    // jOOQ

    static void jooqReadsTheCatalogs() throws Exception {
        Path out = Files.createTempDirectory("generated");
        in("jooq_checks", () -> {
            try (Connection c = connect("jooq_checks")) {
                execute(c, "create type mood as enum ('calm', 'loud')", "create domain positive as int check (value > 0)",
                        "create table person (id bigint generated always as identity primary key, name text not null unique, m mood default 'calm', n positive,"
                                + " tags text[], doc jsonb, made timestamptz default now(), check (name <> ''))",
                        "create table pet (id uuid primary key, owner bigint references person on delete cascade)",
                        "create view grown as select id, name from person where n > 17", "create sequence tickets",
                        "create function twice(i int) returns int language sql as 'select i * 2'",
                        "create function people() returns table (a bigint, b text) language sql as 'select id, name from jooq_checks.person'",
                        "comment on table person is 'who'", "create index on pet (owner)");
            }
            GenerationTool.generate(new org.jooq.meta.jaxb.Configuration()
                    .withJdbc(new Jdbc().withDriver("org.postgresql.Driver").withUrl(url("jooq_checks")).withUser(USER).withPassword(PASSWORD))
                    .withGenerator(new Generator()
                            .withDatabase(new org.jooq.meta.jaxb.Database().withName("org.jooq.meta.postgres.PostgresDatabase").withInputSchema("jooq_checks"))
                            .withTarget(new Target().withPackageName("generated").withDirectory(out.toString()))));
            Set<String> made = new TreeSet<>();
            try (Stream<Path> files = Files.walk(out)) { files.map(Path::toFile).filter(File::isFile).forEach(f -> made.add(f.getName())); }
            for (String name : List.of("Person.java", "Pet.java", "Grown.java", "Mood.java", "Twice.java", "People.java", "Sequences.java", "Keys.java"))
                same(made.contains(name) ? name : made.toString(), name);
            same(Files.readString(out.resolve("generated/Keys.java")).contains("PET__PET_OWNER_FKEY"), true);
        });
    }

    static void jooqWorks() throws Exception {
        in("jooq_checks", () -> {
            try (Connection c = connect("jooq_checks")) {
                DSLContext q = DSL.using(c, SQLDialect.POSTGRES);
                Table<Record> person = DSL.table("person");
                Field<Long> id = DSL.field("id", SQLDataType.BIGINT.identity(true));
                Field<String> name = DSL.field("name", SQLDataType.VARCHAR(40).nullable(false));
                Field<Integer> n = DSL.field("n", SQLDataType.INTEGER);
                q.createTable("person").columns(id, name, n).primaryKey("id").unique("name").execute();
                for (int i = 0; i < 10; i++) q.insertInto(person, name, n).values("p" + i, i).execute();
                q.insertInto(person, name, n).values("p3", 100).onConflict(name).doUpdate().set(n, DSL.excluded(n)).execute();
                same(q.select(DSL.sum(n)).from(person).fetchOne(0, Integer.class), 142);
                same(q.insertInto(person, name).values("new").returningResult(id).fetchOne().value1() > 10, true);
                same(q.select(name).from(person).orderBy(n.desc().nullsLast()).limit(2).offset(1).fetch(name), List.of("p9", "p8"));
                same(q.select(DSL.multiset(DSL.select(name).from(person).where(n.lt(3)).orderBy(name))).fetchOne().value1().size(), 3);
                same(q.with("big").as(DSL.select(n).from(person).where(n.gt(5))).select(DSL.count()).from(DSL.name("big")).fetchOne(0, int.class), 5);
                q.transaction(inner -> DSL.using(inner).deleteFrom(person).where(n.gt(50)).execute());
                same(q.meta().getSchemas("jooq_checks").get(0).getTables().size(), 1);
                q.alterTable("person").addColumn("at", SQLDataType.TIMESTAMPWITHTIMEZONE).execute();
                q.batch(q.query("update person set at = now() where n = 1"), q.query("update person set n = n + 1")).execute();
            }
        });
    }

    public static void main(String[] words) {
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("Hibernate: tables, entities, queries, validation", Program::hibernateWorks);
        checks.put("Hibernate: a schema brought up to date", Program::hibernateUpdates);
        checks.put("Liquibase: changes, tag, snapshot, rollback, drop all", Program::liquibaseWorks);
        checks.put("Flowable: the engine's tables, processes, history", Program::flowableWorks);
        checks.put("jOOQ: classes from the catalogs", Program::jooqReadsTheCatalogs);
        checks.put("jOOQ: statements", Program::jooqWorks);
        java.io.PrintStream told = System.out;
        System.setOut(System.err);
        for (Map.Entry<String, Check> check : checks.entrySet()) {
            String name = check.getKey();
            if (words.length > 0 && Arrays.stream(words).noneMatch(name::contains)) continue;
            long began = System.nanoTime();
            try {
                check.getValue().run();
                told.printf("ok\t%s\t%.3f%n", name, (System.nanoTime() - began) / 1e9);
            } catch (Throwable e) {
                StringBuilder why = new StringBuilder();
                for (Throwable cause = e; cause != null && why.length() < 2000; cause = cause.getCause()) why.append(cause).append(" < ");
                told.printf("no\t%s\t%s%n", name, why.toString().replaceAll("[\\t\\n\\r]+", " "));
            }
        }
        told.println("end");
        System.exit(0);
    }
}
