//! tokio-postgres as programs use it. Prints `ok NAME` or `no NAME: WHY`, tab-separated, one line per check, then `end`.

use std::env::var;
use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use futures_util::future::{join_all, poll_fn, try_join_all};
use futures_util::{SinkExt, StreamExt, TryStreamExt};
use rust_decimal::Decimal;
use serde_json::json;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, IsolationLevel, NoTls, SimpleQueryMessage};
use uuid::Uuid;

type Outcome = Result<(), Box<dyn Error>>;

fn same<T: PartialEq + Debug>(got: T, wanted: T) -> Outcome {
    if got == wanted {
        return Ok(());
    }
    Err(format!("got {got:?}, wanted {wanted:?}").into())
}

fn refused<T>(
    result: Result<T, tokio_postgres::Error>,
    code: &str,
) -> Result<tokio_postgres::error::DbError, Box<dyn Error>> {
    let e = match result {
        Ok(_) => return Err(format!("not refused with {code}").into()),
        Err(e) => e,
    };
    match e.as_db_error() {
        Some(db) if db.code().code() == code => Ok(db.clone()),
        _ => Err(e.into()),
    }
}

fn config() -> Config {
    let mut c = Config::new();
    c.host(var("PGHOST").unwrap_or("127.0.0.1".into()))
        .port(
            var("PGPORT")
                .ok()
                .and_then(|p| p.parse().ok())
                .unwrap_or(5432),
        )
        .user(var("PGUSER").unwrap_or("postgres".into()))
        .dbname(var("PGDATABASE").unwrap_or("postgres".into()))
        .password(var("PGPASSWORD").unwrap_or_default());
    c
}

async fn connect_with(config: &Config) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn connect() -> Result<Client, tokio_postgres::Error> {
    connect_with(&config()).await
}

/// A table of a check's own. The one of the check before goes.
async fn table(columns: &str) -> Result<Client, tokio_postgres::Error> {
    let c = connect().await?;
    c.batch_execute(&format!(
        "drop table if exists made cascade; create table made ({columns})"
    ))
    .await?;
    Ok(c)
}

async fn check(name: &str, run: impl Future<Output = Outcome>) {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w)) {
        return;
    }
    let began = Instant::now();
    let outcome = tokio::time::timeout(Duration::from_secs(60), run).await;
    let why = match outcome {
        Ok(Ok(())) => {
            println!("ok\t{name}\t{:.2}", began.elapsed().as_secs_f64());
            return;
        }
        Ok(Err(e)) => match e.source() {
            Some(source) => format!("{e}: {source}"),
            None => e.to_string(),
        },
        Err(_) => "still running after 60 s".to_string(),
    };
    println!(
        "no\t{name}\t{}",
        why.split_whitespace().collect::<Vec<_>>().join(" ")
    );
}

#[tokio::main]
async fn main() {
    check(
        "login: a wrong password, an unknown role and database",
        login(),
    )
    .await;
    check("login: settings", settings()).await;
    check("values: of every type", values()).await;
    check("values: an enum found by the driver's own query", enums()).await;
    check("values: large ones", large()).await;
    check("prepared: types, columns and reuse", prepared()).await;
    check("prepared: after DDL", stale()).await;
    check("statements: pipelined", pipelined()).await;
    check("statements: simple ones, several results", simple()).await;
    check("rows: streamed, and left early", streamed()).await;
    check("rows: portals in portions", portals()).await;
    check("copy: text and binary, in and out", copy()).await;
    check("transactions: nested, isolated, retried", transactions()).await;
    check("transactions: serializable", serializable()).await;
    check("notify: between two clients", notify()).await;
    check("notices: seen by the client", notices()).await;
    check("cancel: by token and by statement_timeout", cancel()).await;
    check("errors: fields", errors()).await;
    println!("end");
}

async fn login() -> Outcome {
    refused(connect_with(config().password("wrong")).await, "28P01")?;
    refused(connect_with(config().user("nobody")).await, "28P01")?;
    refused(connect_with(config().dbname("nowhere")).await, "3D000")?;
    Ok(())
}

async fn settings() -> Outcome {
    let c = connect_with(
        config()
            .application_name("shop")
            .options("-c statement_timeout=1234"),
    )
    .await?;
    same(
        c.query_one("show application_name", &[])
            .await?
            .get::<_, String>(0),
        "shop".into(),
    )?;
    same(
        c.query_one("show statement_timeout", &[])
            .await?
            .get::<_, String>(0),
        "1234ms".into(),
    )
}

async fn round<T>(c: &Client, kind: &str, value: T) -> Outcome
where
    T: ToSql + FromSqlOwned + PartialEq + Debug + Sync,
{
    let told = |e: tokio_postgres::Error| {
        format!("{kind}: {e}: {:?}", e.source().map(ToString::to_string))
    };
    let sql = format!("select $1::{kind}, $2::{kind}");
    let row = c
        .query_one(&sql, &[&value, &None::<T>])
        .await
        .map_err(told)?;
    same(
        row.try_get::<_, Option<T>>(0).map_err(told)?.as_ref(),
        Some(&value),
    )?;
    same(row.try_get::<_, Option<T>>(1).map_err(told)?, None)
}

async fn values() -> Outcome {
    let c = connect().await?;
    round(&c, "int2", -5i16).await?;
    round(&c, "int4", i32::MIN).await?;
    round(&c, "int8", i64::MAX).await?;
    round(&c, "float4", 1.5f32).await?;
    round(&c, "float8", f64::NEG_INFINITY).await?;
    round(&c, "bool", true).await?;
    round(&c, "text", "h\u{e9}'llo \\ \n\u{20ac}".to_string()).await?;
    round(&c, "varchar", String::new()).await?;
    round(&c, "bytea", vec![0u8, 255, 39, 92]).await?;
    round(&c, "uuid", Uuid::from_u128(7)).await?;
    round(&c, "oid", u32::MAX).await?;
    round(&c, "\"char\"", 7i8).await?;
    round(&c, "json", json!({"a": [1, null]})).await?;
    round(&c, "jsonb", json!({"b": "\u{20ac}", "n": 1.5})).await?;
    let date = NaiveDate::from_ymd_opt(2024, 2, 29).ok_or("date")?;
    let time = NaiveTime::from_hms_micro_opt(12, 34, 56, 789).ok_or("time")?;
    round(&c, "date", date).await?;
    round(&c, "time", time).await?;
    round(&c, "timestamp", NaiveDateTime::new(date, time)).await?;
    round(&c, "timestamptz", NaiveDateTime::new(date, time).and_utc()).await?;
    for n in [
        "0",
        "-0.00001",
        "1234567890.123456789",
        "100000",
        "79228162514264337593543950335",
    ] {
        round(&c, "numeric", n.parse::<Decimal>()?).await?;
    }
    round(&c, "int4[]", vec![Some(1), None, Some(3)]).await?;
    round(
        &c,
        "text[]",
        vec![Some("a".to_string()), None, Some("q\"\\,{}".into())],
    )
    .await?;
    round(&c, "jsonb[]", vec![json!({"a": 1})]).await?;
    round(&c, "timestamptz[]", Vec::<DateTime<Utc>>::new()).await?;
    let row = c
        .query_one(
            "select count(*) from generate_series(1, 5) i where i = any($1)",
            &[&vec![2, 9]],
        )
        .await?;
    same(row.get::<_, i64>(0), 1)
}

async fn enums() -> Outcome {
    let c = connect().await?;
    c.batch_execute("drop table if exists m; drop type if exists mood; create type mood as enum ('sad', 'happy'); create table m (v mood, vs mood[])")
        .await?;
    let s = c
        .prepare("insert into m values ($1, $2) returning v, vs")
        .await?;
    same(s.params()[0].name().to_string(), "mood".to_string())?;
    let labels = |t: &Type| format!("{:?}", t.kind());
    same(
        labels(&s.params()[0]),
        "Enum([\"sad\", \"happy\"])".to_string(),
    )?;
    same(s.params()[1].name().to_string(), "_mood".to_string())?;
    c.batch_execute("insert into m values ('happy', '{sad}'); drop table m; drop type mood")
        .await?;
    Ok(())
}

async fn large() -> Outcome {
    let c = table("id int, v text, raw bytea").await?;
    let (v, raw) = ("x\u{e9}".repeat(4 << 20), vec![7u8; 8 << 20]);
    c.execute("insert into made values (1, $1, $2)", &[&v, &raw])
        .await?;
    let row = c.query_one("select v, raw from made", &[]).await?;
    same(
        (
            row.get::<_, String>(0) == v,
            row.get::<_, Vec<u8>>(1) == raw,
        ),
        (true, true),
    )
}

async fn prepared() -> Outcome {
    let c = table("id int primary key, v varchar(5), n numeric(7, 2)").await?;
    let insert = c.prepare("insert into made values ($1, $2, 1)").await?;
    for i in 0..100 {
        same(c.execute(&insert, &[&i, &format!("v{i}")]).await?, 1)?;
    }
    let s = c
        .prepare("select id, v, n from made where id = $1 and v like $2")
        .await?;
    same(s.params().to_vec(), vec![Type::INT4, Type::TEXT])?;
    same(
        s.columns().iter().map(|c| c.type_().clone()).collect(),
        vec![Type::INT4, Type::VARCHAR, Type::NUMERIC],
    )?;
    same(s.columns()[0].column_id(), Some(1))?;
    let s = c.prepare_typed("select $1", &[Type::INT8]).await?;
    same(c.query_one(&s, &[&5i64]).await?.get::<_, i64>(0), 5)?;
    same(
        c.query_opt("select id from made where id = -1", &[])
            .await?
            .is_none(),
        true,
    )?;
    let count: i64 = c
        .query_one("select count(*) from pg_prepared_statements", &[])
        .await?
        .get(0);
    drop((insert, s));
    let after: i64 = c
        .query_one("select count(*) from pg_prepared_statements", &[])
        .await?
        .get(0);
    same((count >= 3, after < count), (true, true))
}

async fn stale() -> Outcome {
    let c = table("id int primary key").await?;
    let s = c.prepare("select * from made").await?;
    same(c.query(&s, &[]).await?.len(), 0)?;
    connect()
        .await?
        .batch_execute("alter table made add v text")
        .await?;
    let e = refused(c.query(&s, &[]).await, "0A000")?;
    same(
        (e.message(), e.routine()),
        (
            "cached plan must not change result type",
            Some("RevalidateCachedQuery"),
        ),
    )?;
    same(
        c.query(&c.prepare("select * from made").await?, &[])
            .await?
            .len(),
        0,
    )
}

async fn pipelined() -> Outcome {
    let c = table("id int primary key").await?;
    let s = c
        .prepare("insert into made values ($1) returning id")
        .await?;
    let ids: Vec<i32> = (0..300).collect();
    let rows = try_join_all(ids.iter().map(async |i| c.query_one(&s, &[i]).await)).await?;
    same(rows.iter().map(|r| r.get::<_, i32>(0)).collect(), ids)?;
    let mixed = join_all(
        [1000, 5, 1001]
            .iter()
            .map(async |i| c.query_one(&s, &[i]).await.is_ok()),
    )
    .await;
    same(mixed, vec![true, false, true])
}

async fn simple() -> Outcome {
    let c = table("id int").await?;
    let messages = c.simple_query("insert into made values (1), (2); select id from made order by id; update made set id = 0").await?;
    let mut told = Vec::new();
    for m in messages {
        match m {
            SimpleQueryMessage::Row(r) => told.push(r.get(0).unwrap_or("NULL").to_string()),
            SimpleQueryMessage::CommandComplete(n) => told.push(format!("({n})")),
            _ => {}
        }
    }
    same(told.join(" "), "(2) 1 2 (2) (2)".to_string())?;
    refused(
        c.batch_execute("insert into made values (9); select 1/0; insert into made values (9)")
            .await,
        "22012",
    )?;
    same(
        c.query("select 1 from made where id = 9", &[]).await?.len(),
        0,
    )
}

async fn streamed() -> Outcome {
    let c = connect().await?;
    let mut rows = pin!(
        c.query_raw(
            "select i from generate_series(1, $1::bigint) i",
            [100_000i64]
        )
        .await?
    );
    let mut sum = 0;
    while let Some(row) = rows.try_next().await? {
        sum += row.get::<_, i64>(0);
    }
    same(
        (sum, rows.rows_affected()),
        (100_000 * 100_001 / 2, Some(100_000)),
    )?;
    {
        let mut left = pin!(
            c.query_raw(
                "select i from generate_series(1, $1::bigint) i",
                [100_000i64]
            )
            .await?
        );
        left.next().await;
    }
    same(c.query_one("select 1", &[]).await?.get::<_, i32>(0), 1)
}

async fn portals() -> Outcome {
    let mut c = connect().await?;
    let t = c.transaction().await?;
    let (a, b) = (
        t.bind("select i from generate_series(1, 1000) i", &[])
            .await?,
        t.bind("select -i from generate_series(1, $1::int) i", &[&10])
            .await?,
    );
    same(t.query_portal(&a, 10).await?.len(), 10)?;
    same(t.query_portal(&b, 3).await?[2].get::<_, i32>(0), -3)?;
    same(t.query_portal(&a, 1).await?[0].get::<_, i32>(0), 11)?;
    same(t.query_portal(&a, 0).await?.len(), 989)?;
    same(t.query_portal(&a, 5).await?.len(), 0)?;
    t.commit().await?;
    Ok(())
}

async fn copy() -> Outcome {
    let c = table("id int, v text, at timestamptz").await?;
    let mut sink = pin!(c.copy_in("copy made (id, v) from stdin").await?);
    for i in 0..1000 {
        sink.send(Bytes::from(format!("{i}\tv{i}\n"))).await?;
    }
    same(sink.finish().await?, 1000)?;
    let out: Vec<Bytes> = c
        .copy_out("copy (select id, v from made order by id limit 2) to stdout")
        .await?
        .try_collect()
        .await?;
    same(out.concat(), b"0\tv0\n1\tv1\n".to_vec())?;
    let kinds = [Type::INT4, Type::TEXT, Type::TIMESTAMPTZ];
    let mut writer = pin!(BinaryCopyInWriter::new(
        c.copy_in("copy made from stdin binary").await?,
        &kinds
    ));
    let at: DateTime<Utc> = DateTime::from_timestamp(1_700_000_000, 0).ok_or("at")?;
    for i in 2000..4000 {
        writer.as_mut().write(&[&i, &None::<String>, &at]).await?;
    }
    same(writer.finish().await?, 2000)?;
    let stream = c
        .copy_out("copy (select * from made where id >= 2000) to stdout binary")
        .await?;
    let rows: Vec<_> = BinaryCopyOutStream::new(stream, &kinds)
        .try_collect()
        .await?;
    same((rows.len(), rows[5].get::<DateTime<Utc>>(2)), (2000, at))?;
    {
        // Given up in the middle: nothing is kept.
        let mut cut = pin!(c.copy_in("copy made (id) from stdin").await?);
        cut.send(Bytes::from_static(b"7777\n")).await?;
    }
    same(
        c.query("select 1 from made where id = 7777", &[])
            .await?
            .len(),
        0,
    )
}

async fn transactions() -> Outcome {
    let mut c = table("id int primary key, v int").await?;
    let other = connect().await?;
    let mut t = c.transaction().await?;
    t.execute("insert into made values (1, 0)", &[]).await?;
    let inner = t.savepoint("nested").await?;
    refused(
        inner.execute("insert into made values (1, 0)", &[]).await,
        "23505",
    )?;
    inner.rollback().await?;
    t.commit().await?;
    let mut tries = 0;
    loop {
        tries += 1;
        let t = c
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .start()
            .await?;
        let v: i32 = t
            .query_one("select v from made where id = 1", &[])
            .await?
            .get(0);
        if tries == 1 {
            other.execute("update made set v = v + 10", &[]).await?;
        }
        match t
            .execute("update made set v = $1 where id = 1", &[&(v + 1)])
            .await
        {
            Ok(_) => break t.commit().await?,
            e => refused(e, "40001").map(|_| ())?,
        }
    }
    same(
        (
            tries,
            other
                .query_one("select v from made", &[])
                .await?
                .get::<_, i32>(0),
        ),
        (2, 11),
    )?;
    // Dropped: rolled back.
    drop(c.transaction().await?);
    let t = c.build_transaction().read_only(true).start().await?;
    refused(
        t.execute("insert into made values (5, 5)", &[]).await,
        "25006",
    )
    .map(|_| ())
}

async fn serializable() -> Outcome {
    let mut c = connect().await?;
    let t = c
        .build_transaction()
        .isolation_level(IsolationLevel::Serializable)
        .deferrable(true)
        .start()
        .await?;
    t.query_one("select 1", &[]).await?;
    Ok(t.commit().await?)
}

/// A client and the messages that came on their own.
async fn heard(statements: &str) -> Result<(Client, Vec<AsyncMessage>), Box<dyn Error>> {
    let (client, mut connection) = config().connect(NoTls).await?;
    let (send, mut messages) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(m)) = poll_fn(|cx| connection.poll_message(cx)).await {
            let _ = send.send(m);
        }
    });
    client.batch_execute(statements).await?;
    let mut got = Vec::new();
    if let Ok(Some(m)) = tokio::time::timeout(Duration::from_secs(5), messages.recv()).await {
        got.push(m);
    }
    Ok((client, got))
}

async fn notify() -> Outcome {
    let (_c, got) = heard("listen news; notify news, 'one'").await?;
    match got.first() {
        Some(AsyncMessage::Notification(n)) => same((n.channel(), n.payload()), ("news", "one")),
        other => Err(format!("{other:?}").into()),
    }
}

async fn notices() -> Outcome {
    let (_c, got) = heard("drop table if exists never_was").await?;
    match got.first() {
        Some(AsyncMessage::Notice(n)) => {
            same(n.message(), "table \"never_was\" does not exist, skipping")
        }
        other => Err(format!("{other:?}").into()),
    }
}

async fn cancel() -> Outcome {
    let c = connect().await?;
    let token = c.cancel_token();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _ = token.cancel_query(NoTls).await;
    });
    refused(
        c.batch_execute("select count(*) from generate_series(1, 100000000000)")
            .await,
        "57014",
    )?;
    c.batch_execute("set statement_timeout = 200").await?;
    refused(c.query("select pg_sleep(60)", &[]).await, "57014")?;
    same(c.query_one("select 1", &[]).await?.get::<_, i32>(0), 1)
}

async fn errors() -> Outcome {
    let c = table("id int primary key, n int check (n > 0), p int references made").await?;
    c.batch_execute("insert into made values (1, 1, null)")
        .await?;
    for (sql, code, constraint, column) in [
        (
            "insert into made values (1, 1, 1)",
            "23505",
            Some("made_pkey"),
            None,
        ),
        (
            "insert into made values (2, 0, 1)",
            "23514",
            Some("made_n_check"),
            None,
        ),
        (
            "insert into made values (2, 1, 5)",
            "23503",
            Some("made_p_fkey"),
            None,
        ),
        (
            "insert into made values (null, 1, 1)",
            "23502",
            None,
            Some("id"),
        ),
    ] {
        let e = refused(c.execute(sql, &[]).await, code)?;
        same(
            (e.constraint(), e.column(), e.table()),
            (constraint, column, Some("made")),
        )?;
    }
    let e = refused(c.prepare("select nosuch from made").await, "42703")?;
    same(
        e.position(),
        Some(&tokio_postgres::error::ErrorPosition::Original(8)),
    )?;
    c.batch_execute("drop table made").await?;
    Ok(())
}
