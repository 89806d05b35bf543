//! Determines which arguments are recorded for each function, from the kinds of its parameters.

use omptrace_mpi_api::{Class, Direction, Function, Parameter, functions};

/// The source of the table: a row for each number from 0.
pub(crate) fn text() -> String {
    let rows = functions().map(|(_, function)| match function.is_wrapped() {
        true => row(function),
        false => "Row::NONE".to_owned(),
    });
    let rows: Vec<String> = std::iter::once("Row::NONE".to_owned()).chain(rows).collect();
    format!("pub(crate) static ROWS: [Row; {}] = [\n{},\n];\n", rows.len(), rows.join(",\n"))
}

fn row(function: &Function) -> String {
    let parameters: Vec<Parameter> = function.parameters().collect();
    let c_only = parameters.iter().filter(|parameter| parameter.is_c_only).count();
    let strings = parameters
        .iter()
        .filter(|parameter| parameter.kind.starts_with("STRING"))
        .filter(|p| p.kind != "STRING_LENGTH")
        .count();
    let search = Search { parameters: &parameters };
    let [object, result] = [object(function, &search), result(function, &search)];
    let [(count, datatype), (other_count, other_datatype)] = counts(function, &search);
    let in_place = match () {
        () if !is_collective(function.class) && function.class != Class::Persistent => None,
        // The buffer that may be in place is the receive buffer of the root.
        () if is_scatter(function) => search.last(|parameter| parameter.kind == "BUFFER"),
        () => search.first(|parameter| parameter.kind == "BUFFER"),
    };
    let arrays = arrays(function, &search);
    let handle = |place: Option<usize>| match place.map(|place| parameters[place].kind) {
        None => "None",
        Some("COMMUNICATOR") => "Communicator",
        Some("WINDOW") => "Window",
        Some("FILE") => "File",
        Some("REQUEST") => "Request",
        Some("MESSAGE") => "Message",
        Some("SESSION") => "Session",
        Some("DATATYPE") => "Datatype",
        Some(other) => panic!("{}: no handle: {other}", function.name),
    };
    let place = |place: Option<usize>| place.map_or("NONE".to_owned(), |place| place.to_string());
    let fields = [
        ("class", format!("Class::{:?}", function.class)),
        ("kind", format!("Kind::{}", kind(function))),
        ("arguments", parameters.len().to_string()),
        ("c_only", c_only.to_string()),
        ("strings", strings.to_string()),
        ("object", place(object)),
        ("object_type", format!("Handle::{}", handle(object))),
        ("object_by_address", object.is_some_and(|place| parameters[place].is_pointer).to_string()),
        ("peer", place(search.input(&["RANK", "RANK_NNI"]))),
        ("tag", place(search.input(&["TAG"]))),
        ("count", place(count)),
        ("datatype", place(datatype)),
        ("in_place", place(in_place.filter(|_| other_datatype.is_some() || arrays.is_some()))),
        // For `MPI_Isendrecv_replace`, both messages have the same count and datatype.
        ("other_count", place(other_count.or(count.filter(|_| kind(function) == "SendAndReceive")))),
        ("other_datatype", place(other_datatype.or(datatype.filter(|_| kind(function) == "SendAndReceive")))),
        ("partitions", place(search.input(&["PARTITION"]).filter(|_| count.is_some()))),
        ("other_peer", place(second(function, &search, "RANK"))),
        ("other_tag", place(second(function, &search, "TAG"))),
        ("counts", place(arrays.map(|(first, _)| first))),
        ("other_counts", place(arrays.map(|(_, other)| other))),
        ("result", place(result)),
        ("result_type", format!("Handle::{}", handle(result))),
        ("status", place(search.output("STATUS"))),
        ("flag", place(search.output("LOGICAL"))),
    ];
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("/* {} */ Row {{ {} }}", function.name, fields.join(", "))
}

/// Searches a function's parameters.
struct Search<'a> {
    parameters: &'a [Parameter],
}

impl Search<'_> {
    fn first(&self, is_it: impl Fn(&Parameter) -> bool) -> Option<usize> {
        self.parameters.iter().position(is_it)
    }

    fn last(&self, is_it: impl Fn(&Parameter) -> bool) -> Option<usize> {
        self.parameters.iter().rposition(is_it)
    }

    fn input(&self, kinds: &[&str]) -> Option<usize> {
        self.first(|it| kinds.contains(&it.kind) && it.direction == Direction::In && !it.is_array)
    }

    fn output(&self, kind: &str) -> Option<usize> {
        self.first(|it| it.kind == kind && it.direction == Direction::Out && !it.is_array)
    }

    fn any(&self, kind: &str) -> Option<usize> {
        self.first(|it| it.kind == kind && it.direction != Direction::Out && !it.is_array)
    }
}

fn is_collective(class: Class) -> bool {
    matches!(class, Class::Collective | Class::NonblockingCollective)
}

fn is_scatter(function: &Function) -> bool {
    let name = function.name.strip_prefix("MPI_").unwrap_or_default().trim_start_matches('I').to_lowercase();
    name.starts_with("scatter")
}

/// The object on which a call operates.
fn object(function: &Function, search: &Search<'_>) -> Option<usize> {
    match (function.class, function.name) {
        (Class::File, "MPI_File_open") => search.any("COMMUNICATOR"),
        (Class::File, "MPI_File_delete") | (Class::Wait | Class::Test, _) => None,
        (Class::File, _) => search.any("FILE"),
        (Class::OneSided, _) | (_, "MPI_Win_free" | "MPI_Win_set_name") => search.any("WINDOW"),
        (_, "MPI_Mrecv" | "MPI_Imrecv") => search.any("MESSAGE"),
        (_, "MPI_Startall") => None,
        (_, "MPI_Start" | "MPI_Cancel" | "MPI_Request_free") => search.any("REQUEST"),
        (_, name) if name.starts_with("MPI_Pready") => search.any("REQUEST"),
        (_, name) if name.starts_with("MPI_Type_") => search.any("DATATYPE"),
        _ => search.any("COMMUNICATOR"),
    }
}

/// The handle that a call returns.
fn result(function: &Function, search: &Search<'_>) -> Option<usize> {
    let of = |kind: &str| search.output(kind);
    match function.class {
        Class::Wait | Class::Test => None,
        _ if function.name == "MPI_Session_init" => of("SESSION"),
        Class::Other => of("DATATYPE"),
        _ if function.name.starts_with("MPI_Comm_idup") => of("COMMUNICATOR"),
        _ => ["REQUEST", "MESSAGE", "COMMUNICATOR", "WINDOW", "FILE"].into_iter().find_map(of),
    }
}

/// Count and datatype of the buffer that is significant on each rank, and those that are significant if that buffer is
/// in place.
fn counts(function: &Function, search: &Search<'_>) -> [(Option<usize>, Option<usize>); 2] {
    let is_input = |it: &Parameter| it.direction == Direction::In && !it.is_array;
    let is_count = |it: &Parameter| is_input(it) && it.kind.contains("XFER_NUM_ELEM");
    let is_datatype = |it: &Parameter| is_input(it) && it.kind == "DATATYPE";
    let is_any_count = |it: &Parameter| it.kind.contains("XFER_NUM_ELEM");
    let first = (search.first(is_count), search.first(is_datatype));
    let last = (search.last(is_count), search.last(is_datatype));
    let are_two = first.1 != last.1;
    // If the counts of one side are an array, the single count found belongs to the other side.
    let is_one_array =
        first.0 == last.0 && are_two && search.first(is_any_count) != search.last(is_any_count);
    match is_scatter(function) {
        true if is_one_array => [last, (None, first.1)],
        true => [last, first],
        false if !are_two => [first, (None, None)],
        false if is_one_array => [first, (None, last.1)],
        false => [first, last],
    }
}

/// Arrays with a count for each rank, if only these tell how much a rank sends: the first one, and the one that is
/// significant if the buffer is in place.
fn arrays(function: &Function, search: &Search<'_>) -> Option<(usize, usize)> {
    let is_array = |it: &Parameter| it.kind.contains("XFER_NUM_ELEM") && it.is_array;
    let name =
        function.name.strip_prefix("MPI_")?.trim_start_matches('I').trim_end_matches("_init").to_lowercase();
    match &*name {
        "alltoallv" | "reduce_scatter" => Some((search.first(is_array)?, search.last(is_array)?)),
        _ => None,
    }
}

/// A parameter of the message to receive, for a call that sends and receives without blocking. It is recorded because
/// the status of the request may be that of the sent message.
fn second(function: &Function, search: &Search<'_>, kind: &str) -> Option<usize> {
    let is_it = function.name.starts_with("MPI_Isendrecv");
    search.last(|it| it.kind == kind && it.direction == Direction::In).filter(|_| is_it)
}

/// The special treatment of a function.
fn kind(function: &Function) -> &'static str {
    match function.name {
        "MPI_Wait" => "Wait",
        "MPI_Waitall" => "Waitall",
        "MPI_Waitany" => "Waitany",
        "MPI_Waitsome" => "Waitsome",
        "MPI_Test" => "Test",
        "MPI_Testall" => "Testall",
        "MPI_Testany" => "Testany",
        "MPI_Testsome" => "Testsome",
        "MPI_Iprobe" | "MPI_Improbe" | "MPI_Win_test" => "Attempt",
        "MPI_Init" => "Init",
        "MPI_Init_thread" => "InitThread",
        "MPI_Session_init" => "SessionInit",
        "MPI_Comm_free" | "MPI_Comm_disconnect" => "FreeCommunicator",
        "MPI_Comm_idup" | "MPI_Comm_idup_with_info" => "NewCommunicatorLater",
        "MPI_Comm_set_name" => "NameCommunicator",
        "MPI_Win_create" => "NewWindow",
        "MPI_Win_allocate" | "MPI_Win_allocate_shared" => "NewAllocatedWindow",
        "MPI_Win_create_dynamic" => "NewDynamicWindow",
        "MPI_Win_free" => "FreeWindow",
        "MPI_Win_set_name" => "NameWindow",
        "MPI_File_open" => "OpenFile",
        "MPI_File_close" => "CloseFile",
        name if name.starts_with("MPI_Isendrecv") => "SendAndReceive",
        "MPI_Start" => "Start",
        "MPI_Startall" => "Startall",
        "MPI_Request_free" => "FreeRequest",
        "MPI_Type_commit" => "CommitType",
        "MPI_Type_free" => "FreeType",
        name if name.starts_with("MPI_Type_") => "NewType",
        "MPI_Pcontrol" => "Pcontrol",
        "MPI_Finalize" => "Finalize",
        "MPI_Abort" => "Abort",
        _ if function.class == Class::Management && creates_communicator(function) => "NewCommunicator",
        _ => "Plain",
    }
}

fn creates_communicator(function: &Function) -> bool {
    function.parameters().any(|it| it.kind == "COMMUNICATOR" && it.direction == Direction::Out)
}
