//! One error type for everything a client may be told: PostgreSQL's fields, PostgreSQL's SQLSTATEs.

use std::fmt;
use std::panic::Location;

use crate::Oid;

/// Five characters that drivers match on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    pub const fn new(code: &str) -> SqlState {
        let b = code.as_bytes();
        assert!(b.len() == 5, "a SQLSTATE has five characters");
        SqlState([b[0], b[1], b[2], b[3], b[4]])
    }
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("SQLSTATEs are ASCII")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What went wrong, as a client is told it.
///
/// Boxed, so that a `Result` stays one word beside its value.
#[derive(Clone)]
pub struct Error(Box<ErrorFields>);

/// The fields of PostgreSQL's ErrorResponse that we fill.
#[derive(Clone, Debug)]
pub struct ErrorFields {
    pub severity: Severity,
    pub code: SqlState,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Character position in the statement, from 1.
    pub position: Option<u32>,
    /// The text that a function made or holds where the error is about that, and the character
    /// position in it.
    pub internal_query: Option<String>,
    pub internal_position: Option<u32>,
    /// `CONTEXT:` lines, such as COPY's line and column.
    pub context: Option<String>,
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    pub data_type: Option<String>,
    pub constraint: Option<String>,
    pub routine: Option<&'static str>,
    /// The relations that a text names which could not be bound. No client is told: the session may
    /// wait for those who change them, and bind it again.
    pub relations: Vec<Oid>,
    /// Where it was made.
    pub place: &'static Location<'static>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Error,
    /// The session ends.
    Fatal,
    /// The server ends: durability can no longer be promised.
    Panic,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    #[cold]
    #[track_caller]
    pub fn new(code: SqlState, message: impl Into<String>) -> Error {
        Error(Box::new(ErrorFields {
            severity: Severity::Error,
            code,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            internal_query: None,
            internal_position: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
            routine: None,
            relations: Vec::new(),
            place: Location::caller(),
        }))
    }
    /// What the server does not do (yet), by name.
    #[cold]
    #[track_caller]
    pub fn unsupported(what: impl fmt::Display) -> Error {
        Error::new(
            state::FEATURE_NOT_SUPPORTED,
            format!("{what} is not supported"),
        )
    }
    /// A broken invariant that was caught before it did harm.
    #[cold]
    #[track_caller]
    pub fn internal(what: impl fmt::Display) -> Error {
        Error::new(state::INTERNAL_ERROR, format!("internal error: {what}"))
    }
    #[cold]
    #[track_caller]
    pub fn corrupted(what: impl fmt::Display) -> Error {
        Error::new(state::DATA_CORRUPTED, what.to_string())
    }
    pub fn fields(&self) -> &ErrorFields {
        &self.0
    }
    pub fn fields_mut(&mut self) -> &mut ErrorFields {
        &mut self.0
    }
    pub fn code(&self) -> SqlState {
        self.0.code
    }
    pub fn message(&self) -> &str {
        &self.0.message
    }
    pub fn severity(mut self, severity: Severity) -> Error {
        self.0.severity = severity;
        self
    }
    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }
    pub fn position(mut self, position: u32) -> Error {
        self.0.position = Some(position);
        self
    }
    /// The function of PostgreSQL's source that says this, where clients go by it.
    pub fn routine(mut self, routine: &'static str) -> Error {
        self.0.routine = Some(routine);
        self
    }
    pub fn context(mut self, context: impl Into<String>) -> Error {
        self.0.context = Some(context.into());
        self
    }
    /// Adds a line to where it came about. Calls without end are told one by one, so nothing is
    /// copied for each.
    pub fn add_context(&mut self, line: &str) {
        let context = self.0.context.get_or_insert_default();
        if !context.is_empty() {
            context.push('\n');
        }
        context.push_str(line);
    }
    pub fn table(mut self, schema: &str, table: &str) -> Error {
        self.0.schema = Some(schema.into());
        self.0.table = Some(table.into());
        self
    }
    pub fn column(mut self, column: &str) -> Error {
        self.0.column = Some(column.into());
        self
    }
    pub fn constraint(mut self, name: &str) -> Error {
        self.0.constraint = Some(name.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.message)
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.code, self.0.message)?;
        if let Some(detail) = &self.0.detail {
            write!(f, " ({detail})")?;
        }
        Ok(())
    }
}
impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    /// 53100 for a full disk, 58030 for the rest.
    #[cold]
    fn from(e: std::io::Error) -> Error {
        match e.kind() {
            std::io::ErrorKind::StorageFull => Error::new(state::DISK_FULL, format!("{e}")),
            _ => Error::new(state::IO_ERROR, format!("{e}")),
        }
    }
}

/// The SQLSTATEs we raise, by PostgreSQL's condition names.
pub mod state {
    use super::SqlState;
    macro_rules! states { ($($name:ident = $code:literal;)*) => { $(pub const $name: SqlState = SqlState::new($code);)* } }
    states! {
        SUCCESSFUL_COMPLETION = "00000"; WARNING = "01000"; WARNING_DEPRECATED_FEATURE = "01P01"; PRIVILEGE_NOT_REVOKED = "01006"; PRIVILEGE_NOT_GRANTED = "01007";
        CONNECTION_FAILURE = "08006"; PROTOCOL_VIOLATION = "08P01";
        FEATURE_NOT_SUPPORTED = "0A000"; STACKED_DIAGNOSTICS_WITHOUT_HANDLER = "0Z002"; CASE_NOT_FOUND = "20000";
        ERROR_IN_ASSIGNMENT = "22005"; INVALID_TRANSACTION_TERMINATION = "2D000"; NO_RETURN_STATEMENT = "2F005"; TRIGGER_PROTOCOL_VIOLATED = "39P01"; EXTERNAL_ROUTINE_INVOCATION = "39000";
        RAISE_EXCEPTION = "P0001"; NO_DATA_FOUND = "P0002"; TOO_MANY_ROWS = "P0003"; ASSERT_FAILURE = "P0004"; INVALID_GRANT_OPERATION = "0LP01";
        CARDINALITY_VIOLATION = "21000";
        DATA_EXCEPTION = "22000"; STRING_DATA_RIGHT_TRUNCATION = "22001"; NULL_VALUE_NOT_ALLOWED = "22004"; NUMERIC_VALUE_OUT_OF_RANGE = "22003";
        INVALID_DATETIME_FORMAT = "22007"; DATETIME_FIELD_OVERFLOW = "22008"; SUBSTRING_ERROR = "22011"; DIVISION_BY_ZERO = "22012";
        INTERVAL_FIELD_OVERFLOW = "22015"; INVALID_ESCAPE_SEQUENCE = "22025"; INVALID_ARGUMENT_FOR_LOG = "2201E"; INVALID_ARGUMENT_FOR_POWER = "2201F";
        INVALID_REGULAR_EXPRESSION = "2201B"; INVALID_ROW_COUNT_IN_LIMIT = "2201W"; INVALID_ROW_COUNT_IN_OFFSET = "2201X";
        CHARACTER_NOT_IN_REPERTOIRE = "22021"; STRING_DATA_LENGTH_MISMATCH = "22026";
        NOT_AN_XML_DOCUMENT = "2200L"; INVALID_XML_DOCUMENT = "2200M"; INVALID_XML_CONTENT = "2200N"; INVALID_XML_COMMENT = "2200S"; INVALID_XML_PROCESSING_INSTRUCTION = "2200T"; INVALID_PARAMETER_VALUE = "22023"; INVALID_TEXT_REPRESENTATION = "22P02";
        INVALID_BINARY_REPRESENTATION = "22P03"; BAD_COPY_FILE_FORMAT = "22P04"; UNTRANSLATABLE_CHARACTER = "22P05"; ARRAY_SUBSCRIPT_ERROR = "2202E";
        INVALID_TABLESAMPLE_REPEAT = "2202G"; INVALID_TABLESAMPLE_ARGUMENT = "2202H";
        INVALID_PRECEDING_OR_FOLLOWING_SIZE = "22013"; INVALID_ARGUMENT_FOR_NTILE = "22014"; INVALID_ARGUMENT_FOR_NTH_VALUE = "22016";
        DUPLICATE_JSON_OBJECT_KEY_VALUE = "22030"; INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION = "22031"; INVALID_JSON_TEXT = "22032";
        INVALID_SQL_JSON_SUBSCRIPT = "22033"; MORE_THAN_ONE_SQL_JSON_ITEM = "22034"; NO_SQL_JSON_ITEM = "22035"; NON_NUMERIC_SQL_JSON_ITEM = "22036";
        SINGLETON_SQL_JSON_ITEM_REQUIRED = "22038"; SQL_JSON_ARRAY_NOT_FOUND = "22039"; SQL_JSON_MEMBER_NOT_FOUND = "2203A";
        SQL_JSON_NUMBER_NOT_FOUND = "2203B"; SQL_JSON_OBJECT_NOT_FOUND = "2203C"; SQL_JSON_SCALAR_REQUIRED = "2203F";
        SQL_JSON_ITEM_CANNOT_BE_CAST_TO_TARGET_TYPE = "2203G";
        ZERO_LENGTH_CHARACTER_STRING = "2200F"; SEQUENCE_GENERATOR_LIMIT_EXCEEDED = "2200H"; INVALID_TIME_ZONE_DISPLACEMENT = "22009";
        INTEGRITY_CONSTRAINT_VIOLATION = "23000"; RESTRICT_VIOLATION = "23001"; NOT_NULL_VIOLATION = "23502"; FOREIGN_KEY_VIOLATION = "23503";
        UNIQUE_VIOLATION = "23505"; CHECK_VIOLATION = "23514"; EXCLUSION_VIOLATION = "23P01";
        INVALID_CURSOR_STATE = "24000"; INVALID_TRANSACTION_STATE = "25000"; ACTIVE_SQL_TRANSACTION = "25001"; READ_ONLY_SQL_TRANSACTION = "25006";
        NO_ACTIVE_SQL_TRANSACTION = "25P01"; IN_FAILED_SQL_TRANSACTION = "25P02"; IDLE_IN_TRANSACTION_TIMEOUT = "25P03"; TRANSACTION_TIMEOUT = "25P04"; INVALID_SQL_STATEMENT_NAME = "26000"; IDLE_SESSION_TIMEOUT = "57P05";
        TRIGGERED_DATA_CHANGE_VIOLATION = "27000";
        INVALID_AUTHORIZATION_SPECIFICATION = "28000"; INVALID_PASSWORD = "28P01"; DEPENDENT_OBJECTS_STILL_EXIST = "2BP01";
        INVALID_CURSOR_NAME = "34000"; INVALID_CURSOR_DEFINITION = "42P11"; INVALID_CATALOG_NAME = "3D000"; INVALID_SCHEMA_NAME = "3F000";
        SERIALIZATION_FAILURE = "40001"; DEADLOCK_DETECTED = "40P01"; INVALID_SAVEPOINT = "3B001";
        SYNTAX_ERROR_OR_ACCESS_RULE = "42000"; INSUFFICIENT_PRIVILEGE = "42501"; SYNTAX_ERROR = "42601"; INVALID_NAME = "42602"; NAME_TOO_LONG = "42622";
        DUPLICATE_COLUMN = "42701"; AMBIGUOUS_COLUMN = "42702"; UNDEFINED_COLUMN = "42703"; UNDEFINED_OBJECT = "42704"; DUPLICATE_OBJECT = "42710";
        DUPLICATE_ALIAS = "42712"; DUPLICATE_FUNCTION = "42723"; AMBIGUOUS_FUNCTION = "42725"; GROUPING_ERROR = "42803"; DATATYPE_MISMATCH = "42804";
        WRONG_OBJECT_TYPE = "42809"; INVALID_FOREIGN_KEY = "42830"; CANNOT_COERCE = "42846"; UNDEFINED_FUNCTION = "42883"; RESERVED_NAME = "42939";
        WINDOWING_ERROR = "42P20";
        UNDEFINED_TABLE = "42P01"; UNDEFINED_PARAMETER = "42P02"; DUPLICATE_CURSOR = "42P03"; DUPLICATE_DATABASE = "42P04";
        DUPLICATE_PREPARED_STATEMENT = "42P05"; DUPLICATE_SCHEMA = "42P06"; DUPLICATE_TABLE = "42P07"; AMBIGUOUS_PARAMETER = "42P08"; INVALID_COLUMN_REFERENCE = "42P10";
        INVALID_COLUMN_DEFINITION = "42611"; INVALID_OBJECT_DEFINITION = "42P17"; INDETERMINATE_DATATYPE = "42P18"; COLLATION_MISMATCH = "42P21"; INVALID_TABLE_DEFINITION = "42P16";
        INVALID_SCHEMA_DEFINITION = "42P15"; INVALID_FUNCTION_DEFINITION = "42P13"; INVALID_RECURSION = "42P19"; GENERATED_ALWAYS = "428C9"; WITH_CHECK_OPTION_VIOLATION = "44000";
        INSUFFICIENT_RESOURCES = "53000"; DISK_FULL = "53100"; OUT_OF_MEMORY = "53200"; TOO_MANY_CONNECTIONS = "53300"; CONFIGURATION_LIMIT_EXCEEDED = "53400";
        PROGRAM_LIMIT_EXCEEDED = "54000"; STATEMENT_TOO_COMPLEX = "54001"; TOO_MANY_COLUMNS = "54011"; TOO_MANY_ARGUMENTS = "54023";
        OBJECT_NOT_IN_PREREQUISITE_STATE = "55000"; OBJECT_IN_USE = "55006"; CANT_CHANGE_RUNTIME_PARAM = "55P02"; LOCK_NOT_AVAILABLE = "55P03";
        QUERY_CANCELED = "57014"; ADMIN_SHUTDOWN = "57P01"; CRASH_SHUTDOWN = "57P02"; CANNOT_CONNECT_NOW = "57P03";
        IO_ERROR = "58030"; UNDEFINED_FILE = "58P01"; CONFIG_FILE_ERROR = "F0000";
        INTERNAL_ERROR = "XX000"; DATA_CORRUPTED = "XX001"; INDEX_CORRUPTED = "XX002";
    }
}
