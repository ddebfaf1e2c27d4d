//! The names of waits.

/// What kind of thing is waited for: PostgreSQL's `wait_event_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitClass {
    /// A thread waits for a latch.
    LwLock,
    /// A session waits for a heavyweight lock.
    Lock,
    /// Files.
    Io,
    /// The other end of a connection.
    Client,
    /// Another part of the server.
    Ipc,
    /// A deliberate pause.
    Timeout,
    /// A background thread with nothing to do.
    Activity,
}

impl WaitClass {
    /// As `pg_stat_activity.wait_event_type` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            WaitClass::LwLock => "LWLock",
            WaitClass::Lock => "Lock",
            WaitClass::Io => "IO",
            WaitClass::Client => "Client",
            WaitClass::Ipc => "IPC",
            WaitClass::Timeout => "Timeout",
            WaitClass::Activity => "Activity",
        }
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $class:ident, $name:literal;)*) => {
        /// Everything that can be waited for. PostgreSQL's names where PostgreSQL has the wait.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum WaitEvent { $($(#[$doc])* $variant,)* }

        impl WaitEvent {
            pub const ALL: &[WaitEvent] = &[$(WaitEvent::$variant,)*];
            pub const COUNT: usize = WaitEvent::ALL.len();

            pub const fn class(self) -> WaitClass {
                match self { $(WaitEvent::$variant => WaitClass::$class,)* }
            }
            /// As `pg_stat_activity.wait_event` spells it.
            pub const fn name(self) -> &'static str {
                match self { $(WaitEvent::$variant => $name,)* }
            }
        }
    };
}

events! {
    /// A page is read from its file. Object: the page.
    PageRead = Io, "DataFileRead";
    /// A page is written to its file. Object: the page.
    PageWrite = Io, "DataFileWrite";
    /// A data file is made longer. Object: the file.
    Extend = Io, "DataFileExtend";
    /// What was written to a data file begins its way to the device. Object: the file.
    DataFlush = Io, "DataFileFlush";
    /// A data file is made durable. Object: the file.
    DataSync = Io, "DataFileSync";
    /// A data file is cut. Object: the file.
    Truncate = Io, "DataFileTruncate";
    /// The flusher writes the log. Object: the LSN.
    WalWrite = Io, "WALWrite";
    /// The flusher makes the log durable. Object: the LSN.
    WalSync = Io, "WALSync";
    /// The log is read, by recovery. Object: the LSN.
    WalRead = Io, "WALRead";
    /// A commit waits for its record to be durable. Object: the LSN.
    WalFlush = Ipc, "WalFlush";
    /// A record waits for room in the log's buffer. Object: the LSN.
    WalInsert = LwLock, "WALInsert";
    /// A page's latch, shared. Object: the page.
    LatchShared = LwLock, "BufferContentShared";
    /// A page's latch, exclusive. Object: the page.
    LatchExclusive = LwLock, "BufferContentExclusive";
    /// The list of running transactions, where `lab_snapshot` has one to walk. Object: 0.
    ProcArray = LwLock, "ProcArray";
    /// A page that another thread is reading in. Object: the page.
    PageArrival = Ipc, "BufferIO";
    /// A frame to put a page into. Object: the page.
    FreeFrame = Ipc, "BufferAlloc";
    /// Another thread's extension of the same relation. Object: the file.
    LockExtend = Lock, "extend";
    /// A table or index. Object: its oid.
    LockRelation = Lock, "relation";
    /// A row's queue. Object: the tuple.
    LockTuple = Lock, "tuple";
    /// Another transaction's end. Object: its xid.
    LockTransaction = Lock, "transactionid";
    /// An advisory lock. Object: its key.
    LockAdvisory = Lock, "advisory";
    /// A catalog object that is not a relation. Object: its oid.
    LockObject = Lock, "object";
    /// The end of transactions that a deferrable one must not overlap. Object: none.
    SafeSnapshot = Ipc, "SafeSnapshot";
    /// Sessions to leave a database that is to go. Object: the database.
    DatabaseInUse = Ipc, "DatabaseInUse";
    /// Runnable, but the core runs another session. Object: the core.
    CoreQueue = Ipc, "CoreQueue";
    /// A place among the running analytics. Object: the session.
    AnalyticsQueue = Ipc, "AnalyticsQueue";
    /// An analytics query's result. Object: the session.
    AnalyticsRun = Ipc, "ExecuteGather";
    /// A checkpoint asked for. Object: the redo LSN.
    CheckpointDone = Ipc, "CheckpointDone";
    /// A spinlock that another thread holds. Object: its name.
    SpinLock = LwLock, "SpinLock";
    /// The client's next message. Object: the session.
    ClientRead = Client, "ClientRead";
    /// The client to take what was sent. Object: the session.
    ClientWrite = Client, "ClientWrite";
    /// `commit_delay`: other commits may join this flush. Object: the LSN.
    CommitDelay = Timeout, "CommitDelay";
    /// `pg_sleep`. Object: the session.
    Sleep = Timeout, "PgSleep";
    /// A checkpoint paces its writes. Object: the redo LSN.
    CheckpointPace = Timeout, "CheckpointWriteDelay";
    /// The cleaner pauses for others. Object: the table.
    VacuumDelay = Timeout, "VacuumDelay";
    /// The flusher has nothing to do.
    FlusherIdle = Activity, "WalWriterMain";
    /// The page writer has nothing to do.
    PageWriterIdle = Activity, "BgWriterMain";
    /// The checkpointer has nothing to do.
    CheckpointerIdle = Activity, "CheckpointerMain";
    /// The archiver has nothing to do.
    ArchiverIdle = Activity, "ArchiverMain";
    /// A replication client has all of the log. Object: none.
    WalSenderIdle = Activity, "WalSenderMain";
    /// Standbys to have a commit. Object: its LSN.
    SyncRep = Ipc, "SyncRep";
    /// `archive_command`. Object: the end of what it archives.
    ArchiveCommand = Ipc, "ArchiveCommand";
    /// `restore_command`. Object: none.
    RestoreCommand = Ipc, "RestoreCommand";
    /// The cleaner has nothing to do.
    CleanerIdle = Activity, "AutovacuumMain";
}

impl WaitEvent {
    /// Whether this is no hold-up: nothing to do, or a pause that somebody asked for.
    pub const fn is_idle(self) -> bool {
        matches!(self.class(), WaitClass::Activity)
            || matches!(
                self,
                WaitEvent::ClientRead
                    | WaitEvent::Sleep
                    | WaitEvent::CheckpointPace
                    | WaitEvent::VacuumDelay
            )
    }

    /// Whether its waits are worth telling apart by object. Of the client's next message there is
    /// one object a session, and of a core's queue one a thread, which keeps the event's own
    /// numbers anyway.
    pub(crate) const fn has_objects(self) -> bool {
        !self.is_idle() && !matches!(self, WaitEvent::CoreQueue)
    }

    /// Whether pages are told apart, rather than their files: a page is latched, a file is slow.
    pub(crate) const fn is_of_single_pages(self) -> bool {
        matches!(self, WaitEvent::LatchShared | WaitEvent::LatchExclusive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_event_has_its_own_name_and_its_own_number() {
        let names: HashSet<_> = WaitEvent::ALL
            .iter()
            .map(|e| (e.class().name(), e.name()))
            .collect();
        assert_eq!(names.len(), WaitEvent::COUNT);
        for (i, event) in WaitEvent::ALL.iter().enumerate() {
            assert_eq!(*event as usize, i);
        }
        assert_eq!(WaitEvent::LockTransaction.class().name(), "Lock");
        assert_eq!(WaitEvent::LockTransaction.name(), "transactionid");
    }
}
