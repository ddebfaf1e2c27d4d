// pgx and pgxpool as programs use them. Prints `ok NAME` or `no NAME: WHY`, tab-separated, one line per check, then `end`.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

var ctx = context.Background()

// A failed expectation unwinds to `check`.
type failure string

func fail(format string, values ...any) { panic(failure(fmt.Sprintf(format, values...))) }

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func same(got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		fail("got %#v, wanted %#v", got, wanted)
	}
}

func refused(err error, code string) *pgconn.PgError {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != code {
		fail("not refused with %s: %v", code, err)
	}
	return e
}

func connect(options string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, "sslmode=disable "+options)
}

func with(options string, use func(c *pgx.Conn)) {
	c, err := connect(options)
	must(err)
	defer c.Close(ctx)
	use(c)
}

func exec(c *pgx.Conn, statements ...string) {
	for _, sql := range statements {
		_, err := c.Exec(ctx, sql)
		must(err)
	}
}

func one[T any](c *pgx.Conn, sql string, values ...any) T {
	var v T
	must(c.QueryRow(ctx, sql, values...).Scan(&v))
	return v
}

// A table of this check's, made before and dropped after.
func table(columns string, use func(c *pgx.Conn)) {
	with("", func(c *pgx.Conn) { exec(c, "drop table if exists made cascade", "create table made ("+columns+")") })
	defer with("", func(c *pgx.Conn) { exec(c, "drop table if exists made cascade") })
	with("", use)
}

func check(name string, run func()) {
	wanted := len(os.Args) == 1
	for _, word := range os.Args[1:] {
		wanted = wanted || strings.Contains(name, word)
	}
	if !wanted {
		return
	}
	began := time.Now()
	defer func() {
		if e := recover(); e != nil {
			fmt.Printf("no\t%s\t%.600s\n", name, strings.Join(strings.Fields(fmt.Sprint(e)), " "))
			return
		}
		fmt.Printf("ok\t%s\t%.2f\n", name, time.Since(began).Seconds())
	}()
	run()
}

func main() {
	check("login: a wrong password, an unknown role and database", func() {
		for options, code := range map[string]string{"password=wrong": "28P01", "user=nobody": "28P01", "dbname=nowhere": "3D000"} {
			_, err := connect(options)
			refused(err, code)
		}
	})
	check("login: TLS, verified", func() {
		root := os.Getenv("PGSSLROOTCERT")
		if root == "" {
			return
		}
		c, err := pgx.Connect(ctx, "sslmode=verify-full sslrootcert="+root)
		must(err)
		defer c.Close(ctx)
		same(one[int](c, "select 1"), 1)
	})
	check("login: settings", func() {
		with("application_name=shop statement_timeout=1234 search_path=pg_catalog", func(c *pgx.Conn) {
			same(one[string](c, "show statement_timeout"), "1234ms")
			same(one[string](c, "show application_name"), "shop")
			same(c.PgConn().ParameterStatus("standard_conforming_strings"), "on")
		})
	})
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		check("values: of every type, "+mode, func() { with("default_query_exec_mode="+mode, func(c *pgx.Conn) { values(c, mode) }) })
	}
	check("values: json and jsonb", func() {
		table("id int, j json, b jsonb", func(c *pgx.Conn) {
			document := map[string]any{"a": []any{1.0, nil}, "b": "\u20ac"}
			_, err := c.Exec(ctx, "insert into made values (1, $1, $2)", document, document)
			must(err)
			var j, b map[string]any
			must(c.QueryRow(ctx, "select j, b from made where b @> $1", map[string]any{"b": "\u20ac"}).Scan(&j, &b))
			same([]map[string]any{j, b}, []map[string]any{document, document})
		})
	})
	check("values: an enum and its array", func() {
		with("", func(c *pgx.Conn) {
			exec(c, "drop table if exists m; drop type if exists mood", "create type mood as enum ('sad', 'happy')", "create table m (v mood, vs mood[])")
			defer exec(c, "drop table m; drop type mood")
			types, err := c.LoadTypes(ctx, []string{"mood", "_mood"})
			must(err)
			c.TypeMap().RegisterTypes(types)
			_, err = c.Exec(ctx, "insert into m values ($1, $2)", "happy", []string{"sad", "happy"})
			must(err)
			same(one[[]string](c, "select vs from m where v = $1", "happy"), []string{"sad", "happy"})
		})
	})
	check("values: ranges, inet and composites", func() {
		with("", func(c *pgx.Conn) {
			r := one[pgtype.Range[pgtype.Int4]](c, "select int4range(1, 5)")
			same(r.Upper.Int32, int32(5))
			same(one[string](c, "select host('10.0.0.1'::inet)"), "10.0.0.1")
		})
	})
	check("values: records into structs", func() {
		table("id int primary key, name text", func(c *pgx.Conn) {
			exec(c, "insert into made values (1, 'a'), (2, null)")
			type person struct {
				ID   int
				Name *string
			}
			rows, err := c.Query(ctx, "select id, name from made order by id")
			must(err)
			people, err := pgx.CollectRows(rows, pgx.RowToStructByName[person])
			must(err)
			same(len(people), 2)
			same(people[1].Name, (*string)(nil))
			same(one[[]int32](c, "select array_agg(id order by id) from made"), []int32{1, 2})
		})
	})
	check("prepared: by name, and the cache after DDL", func() {
		table("id int primary key, v text", func(c *pgx.Conn) {
			d, err := c.Prepare(ctx, "get", "select v from made where id = $1")
			must(err)
			same([]any{d.ParamOIDs, d.Fields[0].DataTypeOID}, []any{[]uint32{23}, uint32(25)})
			exec(c, "insert into made values (1, 'a')")
			same(one[string](c, "get", 1), "a")
			must(c.Deallocate(ctx, "get"))
			star := func() int {
				rows, err := c.Query(ctx, "select * from made where id = $1", 1)
				must(err)
				got, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]any, error) { return r.Values() })
				if err != nil {
					refused(err, "0A000")
					return -1
				}
				return len(got[0])
			}
			same(star(), 2)
			with("", func(other *pgx.Conn) { exec(other, "alter table made add w int") })
			// The driver forgets the statement once it is told 0A000, and the program tries again.
			if n := star(); n == -1 {
				n = star()
				same(n, 3)
			}
			_, err = c.Exec(ctx, "select $1::int", "x")
			if err == nil {
				fail("text for int4")
			}
			_, err = c.Exec(ctx, "select $1 is null", nil)
			refused(err, "42P18")
		})
	})
	check("rows: many, and ones left unread", func() {
		with("", func(c *pgx.Conn) {
			var sum, i int64
			rows, err := c.Query(ctx, "select i from generate_series(1, $1::bigint) i", 100000)
			must(err)
			_, err = pgx.ForEachRow(rows, []any{&i}, func() error { sum += i; return nil })
			must(err)
			same(sum, int64(100000*100001/2))
			rows, err = c.Query(ctx, "select i from generate_series(1, 100000) i")
			must(err)
			rows.Next()
			rows.Close()
			same(rows.CommandTag().String(), "SELECT 100000")
			rows, err = c.Query(ctx, "select 1 / (500 - i) from generate_series(1, 1000) i")
			must(err)
			for rows.Next() {
			}
			refused(rows.Err(), "22012")
		})
	})
	check("rows: a cursor by SQL", func() {
		with("", func(c *pgx.Conn) {
			tx, err := c.Begin(ctx)
			must(err)
			defer tx.Rollback(ctx)
			exec(c, "declare walk cursor for select i from generate_series(1, 100) i")
			rows, err := tx.Query(ctx, "fetch 10 from walk")
			must(err)
			got, err := pgx.CollectRows(rows, pgx.RowTo[int])
			must(err)
			same([]int{len(got), got[9]}, []int{10, 10})
			tag, err := tx.Exec(ctx, "move forward 20 from walk")
			must(err)
			same(tag.String(), "MOVE 20")
			same(one[int](c, "fetch next from walk"), 31)
			exec(c, "close walk")
		})
	})
	check("batch: many at once, an error in the middle", func() {
		table("id int primary key", func(c *pgx.Conn) {
			b := &pgx.Batch{}
			for i := range 500 {
				b.Queue("insert into made values ($1)", i)
			}
			var total int
			b.Queue("select count(*) from made").QueryRow(func(r pgx.Row) error { return r.Scan(&total) })
			must(c.SendBatch(ctx, b).Close())
			same(total, 500)
			b = &pgx.Batch{}
			b.Queue("insert into made values (1000)")
			b.Queue("insert into made values ($1)", 5)
			b.Queue("insert into made values (1001)")
			refused(c.SendBatch(ctx, b).Close(), "23505")
			same(one[int](c, "select count(*) from made where id >= 1000"), 0)
		})
	})
	check("batch: a pipeline with several syncs", func() {
		with("", func(c *pgx.Conn) {
			p := c.PgConn().StartPipeline(ctx)
			for _, sql := range []string{"select 1", "select 1/0", "select 2"} {
				p.SendQueryParams(sql, nil, nil, nil, nil)
				must(p.Sync())
			}
			var got []string
			for {
				r, err := p.GetResults()
				if r == nil && err == nil {
					break
				}
				switch r := r.(type) {
				case *pgconn.ResultReader:
					read := r.Read()
					if read.Err != nil {
						got = append(got, refused(read.Err, "22012").Code)
					} else {
						got = append(got, string(read.Rows[0][0]))
					}
				case *pgconn.PipelineSync:
					got = append(got, "sync")
					if len(got) == 6 {
						must(p.Close())
						same(got, []string{"1", "sync", "22012", "sync", "2", "sync"})
						return
					}
				default:
					if err != nil {
						got = append(got, refused(err, "22012").Code)
					}
				}
			}
			fail("the pipeline ended early: %v", got)
		})
	})
	check("copy: rows, text and CSV, in and out", func() {
		table("id int, v text, n numeric, at timestamptz, a int[]", func(c *pgx.Conn) {
			at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
			n, err := c.CopyFrom(ctx, pgx.Identifier{"made"}, []string{"id", "v", "n", "at", "a"}, pgx.CopyFromSlice(20000, func(i int) ([]any, error) {
				return []any{i, fmt.Sprint("v\t", i), pgtype.Numeric{Int: big.NewInt(int64(i)), Exp: -2, Valid: true}, at, []int{i, 7}}, nil
			}))
			must(err)
			same(n, int64(20000))
			same(one[string](c, "select sum(n)::text || ' ' || sum(a[1]) from made"), "1999900.00 199990000")
			var out bytes.Buffer
			tag, err := c.PgConn().CopyTo(ctx, &out, "copy (select id, v from made order by id) to stdout (format csv)")
			must(err)
			same(tag.String(), "COPY 20000")
			exec(c, "truncate made")
			tag, err = c.PgConn().CopyFrom(ctx, &out, "copy made (id, v) from stdin (format csv)")
			must(err)
			same(tag.String(), "COPY 20000")
			_, err = c.PgConn().CopyFrom(ctx, strings.NewReader("1\tx\tnot a number\n"), "copy made (id, v, n) from stdin")
			same(refused(err, "22P02").Where, `COPY made, line 1, column n: "not a number"`)
			_, err = c.CopyFrom(ctx, pgx.Identifier{"made"}, []string{"id"}, pgx.CopyFromFunc(func() ([]any, error) { return nil, errors.New("no more") }))
			if err == nil {
				fail("the client's error was lost")
			}
			same(one[int](c, "select count(*) from made"), 20000)
		})
	})
	check("transactions: nested, isolated, retried", func() {
		table("id int primary key, v int", func(c *pgx.Conn) {
			must(pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "insert into made values (1, 0)")
				must(err)
				err = pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
					_, err := inner.Exec(ctx, "insert into made values (2, 1/0)")
					return err
				})
				refused(err, "22012")
				return nil
			}))
			with("", func(other *pgx.Conn) {
				tries := 0
				for {
					tries++
					err := pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
						var v int
						if err := tx.QueryRow(ctx, "select v from made where id = 1").Scan(&v); err != nil {
							return err
						}
						if tries == 1 {
							exec(other, "update made set v = v + 10")
						}
						_, err := tx.Exec(ctx, "update made set v = $1 where id = 1", v+1)
						return err
					})
					if err == nil {
						break
					}
					refused(err, "40001")
				}
				same([]int{tries, one[int](c, "select v from made")}, []int{2, 11})
			})
			_, err := c.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly, DeferrableMode: pgx.NotDeferrable})
			must(err)
			_, err = c.Exec(ctx, "insert into made values (5, 5)")
			refused(err, "25006")
		})
	})
	check("transactions: serializable", func() {
		with("", func(c *pgx.Conn) {
			must(pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable}, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "select 1")
				return err
			}))
		})
	})
	check("notify: between two connections", func() {
		with("", func(a *pgx.Conn) {
			with("", func(b *pgx.Conn) {
				exec(a, "listen news")
				exec(b, "notify news, 'one'")
				soon, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				n, err := a.WaitForNotification(soon)
				must(err)
				same([]any{n.Channel, n.Payload, n.PID}, []any{"news", "one", b.PgConn().PID()})
			})
		})
	})
	check("cancel: a context's end, a cancel request, statement_timeout", func() {
		with("", func(c *pgx.Conn) {
			go func() {
				time.Sleep(300 * time.Millisecond)
				_ = c.PgConn().CancelRequest(ctx)
			}()
			_, err := c.Exec(ctx, "select count(*) from generate_series(1, 100000000000)")
			refused(err, "57014")
			exec(c, "set statement_timeout = 200")
			_, err = c.Exec(ctx, "select pg_sleep(60)")
			refused(err, "57014")
			exec(c, "set statement_timeout = 0")
			soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			_, err = c.Exec(soon, "select pg_sleep(60)")
			same([]bool{errors.Is(err, context.DeadlineExceeded), c.IsClosed()}, []bool{true, true})
		})
	})
	check("errors: fields", func() {
		table("id int primary key, n int check (n > 0), p int references made", func(c *pgx.Conn) {
			exec(c, "insert into made values (1, 1, null)")
			for _, wrong := range []struct {
				sql, code, constraint, column string
				position                      int32
			}{
				{"select nosuch from made", "42703", "", "", 8}, {"insert into made values (1, 1, 1)", "23505", "made_pkey", "", 0}, {"insert into made values (2, 0, 1)", "23514", "made_n_check", "", 0},
				{"insert into made values (2, 1, 5)", "23503", "made_p_fkey", "", 0}, {"insert into made values (null, 1, 1)", "23502", "", "id", 0}, {"selec 1", "42601", "", "", 1},
			} {
				_, err := c.Exec(ctx, wrong.sql)
				e := refused(err, wrong.code)
				same([]any{e.ConstraintName, e.ColumnName, e.Position, e.Severity}, []any{wrong.constraint, wrong.column, wrong.position, "ERROR"})
			}
		})
	})
	check("notices: seen by the client", func() {
		config, err := pgx.ParseConfig("sslmode=disable")
		must(err)
		var got []string
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { got = append(got, n.Message) }
		c, err := pgx.ConnectConfig(ctx, config)
		must(err)
		defer c.Close(ctx)
		exec(c, "drop table if exists never_was")
		same(got, []string{`table "never_was" does not exist, skipping`})
	})
	check("pool: transactions of many, lost connections replaced", func() {
		table("n int", func(c *pgx.Conn) {
			exec(c, "insert into made values (0)")
			pool, err := pgxpool.New(ctx, "sslmode=disable pool_max_conns=6 application_name=pooled")
			must(err)
			defer pool.Close()
			var group sync.WaitGroup
			failed := make(chan error, 300)
			for range 30 {
				group.Add(1)
				go func() {
					defer group.Done()
					for range 10 {
						if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
							_, err := tx.Exec(ctx, "update made set n = n + $1", 1)
							return err
						}); err != nil {
							failed <- err
						}
					}
				}()
			}
			group.Wait()
			close(failed)
			for err := range failed {
				must(err)
			}
			same(one[int](c, "select n from made"), 300)
			exec(c, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pooled'")
			time.Sleep(1200 * time.Millisecond) // past the idle time after which the pool pings
			for range 10 {
				var n int
				must(pool.QueryRow(ctx, "select 1").Scan(&n))
			}
		})
	})
	fmt.Println("end")
}

func round[T any](c *pgx.Conn, kind string, v T) {
	var got *T
	must2 := func(err error) {
		if err != nil {
			fail("%s: %v", kind, err)
		}
	}
	must2(c.QueryRow(ctx, "select $1::"+kind, v).Scan(&got))
	if got == nil || !reflect.DeepEqual(*got, v) {
		fail("%s: sent %v, got %v", kind, v, got)
	}
	must2(c.QueryRow(ctx, "select $1::"+kind, (*T)(nil)).Scan(&got))
	if got != nil {
		fail("%s: NULL came back as %v", kind, *got)
	}
}

func values(c *pgx.Conn, mode string) {
	round[int16](c, "int2", -5)
	round[int32](c, "int4", -1<<31)
	round[int64](c, "int8", 1<<63-1)
	round[float32](c, "float4", 1.5)
	round[float64](c, "float8", 0.1)
	round(c, "bool", true)
	round(c, "text", "h\u00e9'llo \\ \n\u20ac")
	round(c, "varchar", "")
	round(c, "bytea", []byte{0, 255, 39, 92})
	round(c, "uuid", pgtype.UUID{Bytes: [16]byte{1, 2, 15: 9}, Valid: true})
	round(c, "timestamp", pgtype.Timestamp{Time: time.Date(2024, 2, 29, 12, 34, 56, 123456000, time.UTC), Valid: true})
	round(c, "date", pgtype.Date{Time: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), Valid: true})
	round(c, "time", pgtype.Time{Microseconds: 45296789000, Valid: true})
	round(c, "interval", pgtype.Interval{Months: 14, Days: 3, Microseconds: -7, Valid: true})
	round(c, "numeric", pgtype.Numeric{Int: big.NewInt(-12345678901234567), Exp: -5, Valid: true})
	at := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	if got := one[time.Time](c, "select $1::timestamptz", at); !got.Equal(at) {
		fail("timestamptz: sent %v, got %v", at, got)
	}
	round(c, "int4[]", []int32{1, 2, 3})
	round(c, "text[]", []string{"a", "q\"\\,{}", "", "NULL"})
	round(c, "float8[]", []float64{0.5})
	round(c, "bool[]", []bool{true, false})
	if mode != "exec" && mode != "simple_protocol" {
		round(c, "int8[]", []*int64{nil})
		same(one[bool](c, "select 2 = any($1)", []int32{1, 2}), true)
	}
}
