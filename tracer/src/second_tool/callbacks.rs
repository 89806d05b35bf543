//! The functions that are registered if there is a second tool. Each calls the tracer's function and the second tool's,
//! with each tool's own data words.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::mem::{transmute, transmute_copy};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use ompt_sys::*;

use crate::recorder::callback::Function;
use crate::runtime_faults::join_barrier;
use crate::runtime_faults::join_barrier::of_both;
use crate::second_tool::data_words;

type Data = *mut ompt_data_t;
type Code = *const c_void;

/// Greater than any callback's number.
const NUMBERS: usize = 64;

/// The functions that the two tools have registered for a callback; null for none.
#[derive(Debug)]
struct Wanted {
    ours: AtomicPtr<()>,
    theirs: AtomicPtr<()>,
    /// The runtime's result when the function was registered.
    result: AtomicU32,
}

static WANTED: [Wanted; NUMBERS] = [const {
    Wanted { ours: AtomicPtr::new(null_mut()), theirs: AtomicPtr::new(null_mut()), result: AtomicU32::new(0) }
}; NUMBERS];

/// The runtime's `ompt_set_callback`.
static SET_CALLBACK: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// Whether the runtime needs empty words, which it copies in the barrier at the end of a parallel region; see
/// [`join_barrier`].
static WANTS_EMPTY: AtomicBool = AtomicBool::new(false);

/// Callbacks that are always needed to know when an object with data words begins and ends.
const BEGINS_AND_ENDS: &[ompt_callbacks_t] = &[
    ompt_callback_thread_begin,
    ompt_callback_thread_end,
    ompt_callback_parallel_begin,
    ompt_callback_parallel_end,
    ompt_callback_task_create,
    ompt_callback_task_schedule,
    ompt_callback_implicit_task,
];

/// A runtime with this entry point starts.
pub(crate) fn begin(set_callback: ompt_set_callback_t, wants_empty: bool) {
    for wanted in &WANTED {
        // Relaxed: no callback is registered yet.
        wanted.ours.store(null_mut(), Ordering::Relaxed);
        wanted.theirs.store(null_mut(), Ordering::Relaxed);
    }
    // Release, like the next; pairs with Acquire in `set_in_runtime` and `is_always_registered`.
    WANTS_EMPTY.store(wants_empty, Ordering::Release);
    SET_CALLBACK.store(set_callback as *mut (), Ordering::Release);
}

/// Registers the callbacks in [`BEGINS_AND_ENDS`], even if neither tool wants them.
pub(crate) fn register_ends() {
    for number in BEGINS_AND_ENDS {
        register(*number);
    }
    if is_always_registered(ompt_callback_sync_region_wait) {
        register(ompt_callback_sync_region_wait);
    }
}

/// `ompt_set_callback` for the tracer.
///
/// # Safety
/// The requirements of the runtime's `ompt_set_callback`.
pub(crate) unsafe extern "C" fn set_ours(
    number: ompt_callbacks_t,
    function: Option<ompt_callback_t>,
) -> ompt_set_result_t {
    set(number, function, |wanted| &wanted.ours)
}

/// `ompt_set_callback` for the second tool.
///
/// # Safety
/// The requirements of the runtime's `ompt_set_callback`.
pub(crate) unsafe extern "C" fn set_theirs(
    number: ompt_callbacks_t,
    function: Option<ompt_callback_t>,
) -> ompt_set_result_t {
    set(number, function, |wanted| &wanted.theirs)
}

/// `ompt_get_callback` for the second tool.
///
/// # Safety
/// The requirements of the runtime's `ompt_get_callback`: `function` is valid for writing.
pub(crate) unsafe extern "C" fn get_theirs(
    number: ompt_callbacks_t,
    function: *mut Option<ompt_callback_t>,
) -> c_int {
    let found =
        WANTED.get(number.0 as usize).and_then(|wanted| registered::<ompt_callback_t>(&wanted.theirs));
    // SAFETY: by this function's contract.
    unsafe { function.write(found) };
    c_int::from(found.is_some())
}

/// Removes all callbacks of the second tool.
pub(crate) fn forget_theirs() {
    for (number, wanted) in WANTED.iter().enumerate() {
        // Acquire; pairs with Release in `set`.
        if !wanted.theirs.load(Ordering::Acquire).is_null() {
            set(ompt_callbacks_t(number as u32), None, |wanted| &wanted.theirs);
        }
    }
}

fn set(
    number: ompt_callbacks_t,
    function: Option<ompt_callback_t>,
    place: impl Fn(&Wanted) -> &AtomicPtr<()>,
) -> ompt_set_result_t {
    let Some(wanted) = WANTED.get(number.0 as usize).filter(|_| both(number).is_some()) else {
        // The runtime may have an unknown callback, whose data words could not be split.
        return ompt_set_error;
    };
    let pointer = function.map_or(null_mut(), |function| function as *mut ());
    // Release; pairs with Acquire in `registered`.
    place(wanted).store(pointer, Ordering::Release);
    if function.is_some() {
        return register(number);
    }
    // Acquire; pairs with Release above.
    let is_wanted =
        [&wanted.ours, &wanted.theirs].iter().any(|function| !function.load(Ordering::Acquire).is_null());
    if is_wanted || is_always_registered(number) {
        // Relaxed: the thread that registers has the result of an earlier registration, or of its own.
        return ompt_set_result_t(wanted.result.load(Ordering::Relaxed));
    }
    set_in_runtime(number, None)
}

fn is_always_registered(number: ompt_callbacks_t) -> bool {
    BEGINS_AND_ENDS.contains(&number)
        || number == ompt_callback_sync_region_wait && WANTS_EMPTY.load(Ordering::Acquire)
}

/// Registers the function that calls both tools.
fn register(number: ompt_callbacks_t) -> ompt_set_result_t {
    let result = set_in_runtime(number, both(number));
    // Relaxed: see `set`.
    WANTED[number.0 as usize].result.store(result.0, Ordering::Relaxed);
    result
}

fn set_in_runtime(number: ompt_callbacks_t, function: Option<ompt_callback_t>) -> ompt_set_result_t {
    // Acquire; pairs with Release in `begin`.
    let set_callback = SET_CALLBACK.load(Ordering::Acquire);
    if set_callback.is_null() {
        return ompt_set_error;
    }
    // SAFETY: a pointer that is not null was stored by `begin`, and is the runtime's entry point; the function has the
    // signature that belongs to the number.
    unsafe { transmute::<*mut (), ompt_set_callback_t>(set_callback)(number, function) }
}

/// The registered function, of type `F`.
#[inline]
fn registered<F: Copy>(place: &AtomicPtr<()>) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
    // Acquire; pairs with Release in `set`.
    let function = place.load(Ordering::Acquire);
    // SAFETY: if not null, a function that was registered for the number to which the caller's type belongs.
    (!function.is_null()).then(|| unsafe { transmute_copy(&function) })
}

/// The return value of a callback, combined from both tools' return values.
trait Answer {
    fn of(ours: Option<Self>, theirs: Option<Self>) -> Self
    where
        Self: Sized;
}

impl Answer for () {
    fn of(_: Option<()>, _: Option<()>) {}
}

/// The result of `control_tool`: that of the second tool unless the second tool ignored the call, as if it were the
/// only tool.
impl Answer for c_int {
    fn of(ours: Option<c_int>, theirs: Option<c_int>) -> c_int {
        const IGNORED: c_int = 1;
        theirs.filter(|answer| *answer != IGNORED).or(ours).or(theirs).unwrap_or(IGNORED)
    }
}

/// The argument for each tool: its own data word, or the same value.
#[inline]
fn split<T: Copy + 'static>(argument: T) -> (T, T) {
    if std::any::TypeId::of::<T>() != std::any::TypeId::of::<Data>() {
        return (argument, argument);
    }
    // SAFETY: the types are the same; the runtime's data is null, or valid during the callback.
    unsafe {
        let (ours, theirs) = data_words::split(transmute_copy::<T, Data>(&argument));
        (transmute_copy(&ours), transmute_copy(&theirs))
    }
}

/// The function that calls both tools, for the callback with number `N` and signature `F`.
struct Both<const N: u32, F>(PhantomData<F>);

trait CallsBoth<F> {
    const FUNCTION: F;
}

macro_rules! calls_both {
    ($($argument:ident: $type:ident),*) => {
        impl<const N: u32, R: Answer, $($type: Copy + 'static),*> CallsBoth<unsafe extern "C" fn($($type),*) -> R>
            for Both<N, unsafe extern "C" fn($($type),*) -> R>
        {
            const FUNCTION: unsafe extern "C" fn($($type),*) -> R = {
                unsafe extern "C" fn function<const N: u32, R: Answer, $($type: Copy + 'static),*>(
                    $($argument: $type),*
                ) -> R {
                    type Registered<R, $($type),*> = unsafe extern "C" fn($($type),*) -> R;
                    let wanted = &WANTED[N as usize];
                    $(let $argument = split($argument);)*
                    let ours = registered::<Registered<R, $($type),*>>(&wanted.ours);
                    // SAFETY: registered for this number, and so of this type; the arguments of this call.
                    let ours = ours.map(|function| unsafe { function($($argument.0),*) });
                    let theirs = registered::<Registered<R, $($type),*>>(&wanted.theirs);
                    // SAFETY: as above.
                    let theirs = theirs.map(|function| unsafe { function($($argument.1),*) });
                    R::of(ours, theirs)
                }
                function::<N, R, $($type),*>
            };
        }
    };
}

calls_both!(a: A);
calls_both!(a: A, b: B);
calls_both!(a: A, b: B, c: C);
calls_both!(a: A, b: B, c: C, d: D);
calls_both!(a: A, b: B, c: C, d: D, e: E);
calls_both!(a: A, b: B, c: C, d: D, e: E, f: F);
calls_both!(a: A, b: B, c: C, d: D, e: E, f: F, g: G);
calls_both!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H);
calls_both!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I);
calls_both!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J);
calls_both!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J, k: K);

/// Calls both tools' functions for the callback with this name.
macro_rules! call_both {
    ($name:ident($($argument:expr),*)) => {
        <Both<{ callback::$name.0 }, callback::$name> as CallsBoth<callback::$name>>::FUNCTION($($argument),*)
    };
}

macro_rules! table {
    ($($name:ident $number:ident $signature:ident)*) => {
        /// The functions that only call both tools, by number.
        static PLAIN: &[(ompt_callbacks_t, Function)] = &[$((
            ompt_sys::$number,
            // SAFETY: the function has the signature that belongs to the number.
            unsafe {
                Function::new(
                    <Both<{ ompt_sys::$number.0 }, ompt_sys::$signature> as CallsBoth<ompt_sys::$signature>>::FUNCTION
                        as *const c_void,
                )
            },
        )),*];
    };
}
ompt_sys::for_each_callback!(table);

macro_rules! own {
    ($($number:ident $function:ident)*) => {
        /// The functions that do more, because an object begins or ends, or an argument is only for one tool.
        static OWN: &[(ompt_callbacks_t, Function)] = &[$((
            $number,
            // SAFETY: the function has the signature that belongs to the number.
            unsafe { Function::new($function as *const c_void) },
        )),*];
    };
}

own! {
    ompt_callback_thread_begin thread_begin
    ompt_callback_thread_end thread_end
    ompt_callback_parallel_begin parallel_begin
    ompt_callback_parallel_end parallel_end
    ompt_callback_task_create task_create
    ompt_callback_task_schedule task_schedule
    ompt_callback_implicit_task implicit_task
    ompt_callback_sync_region_wait sync_region_wait
    ompt_callback_target_data_op target_data_op
    ompt_callback_target_emi target_emi
    ompt_callback_target_data_op_emi target_data_op_emi
    ompt_callback_target_submit_emi target_submit_emi
    ompt_callback_device_initialize device_initialize
}

/// The function to register; `None` for an unknown callback.
fn both(number: ompt_callbacks_t) -> Option<ompt_callback_t> {
    let mut all = OWN.iter().chain(PLAIN);
    let found = all.find(|(of, _)| *of == number);
    found.map(|(_, function)| function.0)
}

unsafe extern "C" fn thread_begin(thread_type: ompt_thread_t, thread_data: Data) {
    // SAFETY: the arguments of this call.
    unsafe {
        data_words::create(thread_data);
        call_both!(thread_begin(thread_type, thread_data));
    }
}

unsafe extern "C" fn thread_end(thread_data: Data) {
    // SAFETY: the argument of this call.
    unsafe {
        call_both!(thread_end(thread_data));
        data_words::release(thread_data);
    }
}

unsafe extern "C" fn parallel_begin(
    encountering_task_data: Data,
    encountering_task_frame: *const ompt_frame_t,
    parallel_data: Data,
    requested_parallelism: c_uint,
    flags: c_int,
    codeptr_ra: Code,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        data_words::create(parallel_data);
        call_both!(parallel_begin(
            encountering_task_data,
            encountering_task_frame,
            parallel_data,
            requested_parallelism,
            flags,
            codeptr_ra
        ));
    }
}

unsafe extern "C" fn parallel_end(
    parallel_data: Data,
    encountering_task_data: Data,
    flags: c_int,
    codeptr_ra: Code,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        call_both!(parallel_end(parallel_data, encountering_task_data, flags, codeptr_ra));
        data_words::release(parallel_data);
    }
}

unsafe extern "C" fn task_create(
    encountering_task_data: Data,
    encountering_task_frame: *const ompt_frame_t,
    new_task_data: Data,
    flags: c_int,
    has_dependences: c_int,
    codeptr_ra: Code,
) {
    // SAFETY: the arguments of this call.
    unsafe {
        if ompt_task_flag_t(flags as u32).contains(ompt_task_taskwait) {
            data_words::begin_at(new_task_data);
        } else {
            data_words::create(new_task_data);
        }
        call_both!(task_create(
            encountering_task_data,
            encountering_task_frame,
            new_task_data,
            flags,
            has_dependences,
            codeptr_ra
        ));
    }
}

unsafe extern "C" fn task_schedule(prior: Data, status: ompt_task_status_t, next: Data) {
    const ENDS: [ompt_task_status_t; 3] = [ompt_task_complete, ompt_task_cancel, ompt_task_late_fulfill];
    // SAFETY: the arguments of this call.
    unsafe {
        join_barrier::task_is_suspended(prior);
        call_both!(task_schedule(prior, status, next));
        if ENDS.contains(&status) {
            data_words::release(prior);
        }
    }
}

unsafe extern "C" fn implicit_task(
    endpoint: ompt_scope_endpoint_t,
    parallel_data: Data,
    task_data: Data,
    actual_parallelism: c_uint,
    index: c_uint,
    flags: c_int,
) {
    let is_initial = ompt_task_flag_t(flags as u32).contains(ompt_task_initial);
    let begins = endpoint == ompt_scope_begin;
    let may_be_copied = !is_initial || !begins && of_both(|known| known.is_another(parallel_data, task_data));
    let [parallel_data, task_data] = match is_initial && !begins {
        true => of_both(|known| known.at_end(parallel_data, task_data)),
        false => [parallel_data, task_data],
    };
    // SAFETY: the arguments of this call, or the pointers of the begin event.
    unsafe {
        if begins {
            data_words::create_where_empty(parallel_data);
            data_words::create(task_data);
        }
        call_both!(implicit_task(endpoint, parallel_data, task_data, actual_parallelism, index, flags));
        if begins && is_initial {
            of_both(|known| {
                known.begins(parallel_data, task_data, actual_parallelism, index);
            });
        }
        if !begins {
            data_words::release(task_data);
            if WANTS_EMPTY.load(Ordering::Relaxed) && may_be_copied {
                join_barrier::implicit_task_ends(task_data);
            }
        }
    }
}

unsafe extern "C" fn sync_region_wait(
    kind: ompt_sync_region_t,
    endpoint: ompt_scope_endpoint_t,
    parallel_data: Data,
    task_data: Data,
    codeptr_ra: Code,
) {
    // SAFETY: the arguments of this call.
    let call = || unsafe {
        call_both!(sync_region_wait(kind, endpoint, parallel_data, task_data, codeptr_ra));
    };
    // Relaxed: stored before the function was registered.
    if codeptr_ra.is_null() && WANTS_EMPTY.load(Ordering::Relaxed) {
        // SAFETY: the arguments of this call.
        unsafe { join_barrier::around_copy(kind, endpoint, task_data, call) };
    } else {
        call();
    }
}

/// Declared with 64-bit registers and a tenth argument, which the tracer records; a tool with the specification's nine
/// parameters ignores it.
unsafe extern "C" fn target_data_op(
    target_id: u64,
    host_op_id: u64,
    optype: u64,
    src_addr: u64,
    src_device_num: u64,
    dest_addr: u64,
    dest_device_num: u64,
    bytes: u64,
    codeptr_ra: u64,
    tenth: u64,
) {
    type Op = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);
    // SAFETY: registered for this number; the arguments of this call.
    unsafe {
        <Both<{ ompt_callback_target_data_op.0 }, Op> as CallsBoth<Op>>::FUNCTION(
            target_id,
            host_op_id,
            optype,
            src_addr,
            src_device_num,
            dest_addr,
            dest_device_num,
            bytes,
            codeptr_ra,
            tenth,
        );
    }
}

unsafe extern "C" fn target_emi(
    kind: ompt_target_t,
    endpoint: ompt_scope_endpoint_t,
    device_num: c_int,
    task_data: Data,
    target_task_data: Data,
    target_data: Data,
    codeptr_ra: Code,
) {
    if endpoint != ompt_scope_end {
        data_words::begin_at(target_data);
    }
    // SAFETY: the arguments of this call.
    unsafe {
        call_both!(target_emi(
            kind,
            endpoint,
            device_num,
            task_data,
            target_task_data,
            target_data,
            codeptr_ra
        ));
    }
}

unsafe extern "C" fn target_data_op_emi(
    endpoint: ompt_scope_endpoint_t,
    target_task_data: Data,
    target_data: Data,
    host_op_id: *mut ompt_id_t,
    optype: ompt_target_data_op_t,
    src_addr: *mut c_void,
    src_device_num: c_int,
    dest_addr: *mut c_void,
    dest_device_num: c_int,
    bytes: usize,
    codeptr_ra: Code,
) {
    let wanted = &WANTED[ompt_callback_target_data_op_emi.0 as usize];
    // SAFETY: the runtime's data is null, or valid during the callback.
    let (task, target) = unsafe { (data_words::split(target_task_data), data_words::split(target_data)) };
    let call = |function: callback::target_data_op_emi, task, target, id| {
        // SAFETY: registered for this number; the arguments of this call.
        unsafe {
            function(
                endpoint,
                task,
                target,
                id,
                optype,
                src_addr,
                src_device_num,
                dest_addr,
                dest_device_num,
                bytes,
                codeptr_ra,
            );
        }
    };
    if let Some(ours) = registered(&wanted.ours) {
        call(ours, task.0, target.0, host_op_id);
    }
    if let Some(theirs) = registered(&wanted.theirs) {
        call(theirs, task.1, target.1, their_operation(endpoint, host_op_id));
    }
}

unsafe extern "C" fn target_submit_emi(
    endpoint: ompt_scope_endpoint_t,
    target_data: Data,
    host_op_id: *mut ompt_id_t,
    requested_num_teams: c_uint,
) {
    let wanted = &WANTED[ompt_callback_target_submit_emi.0 as usize];
    // SAFETY: the runtime's data is null, or valid during the callback.
    let target = unsafe { data_words::split(target_data) };
    let call = |function: callback::target_submit_emi, target, id| {
        // SAFETY: registered for this number; the arguments of this call.
        unsafe { function(endpoint, target, id, requested_num_teams) };
    };
    if let Some(ours) = registered(&wanted.ours) {
        call(ours, target.0, host_op_id);
    }
    if let Some(theirs) = registered(&wanted.theirs) {
        call(theirs, target.1, their_operation(endpoint, host_op_id));
    }
}

/// The second tool's id of an operation. The runtime's word contains the tracer's id, which device records contain,
/// too.
fn their_operation(endpoint: ompt_scope_endpoint_t, host_op_id: *mut ompt_id_t) -> *mut ompt_id_t {
    if host_op_id.is_null() {
        return host_op_id;
    }
    if endpoint != ompt_scope_end {
        data_words::begin_at(host_op_id);
    }
    data_words::of_address(host_op_id).cast()
}

unsafe extern "C" fn device_initialize(
    device_num: c_int,
    device_type: *const c_char,
    device: *mut c_void,
    lookup: Option<ompt_function_lookup_t>,
    documentation: *const c_char,
) {
    let wanted = &WANTED[ompt_callback_device_initialize.0 as usize];
    let ours = registered::<callback::device_initialize>(&wanted.ours);
    if let Some(ours) = ours {
        // SAFETY: registered for this number; the arguments of this call.
        unsafe { ours(device_num, device_type, device, lookup, documentation) };
    }
    if let Some(theirs) = registered::<callback::device_initialize>(&wanted.theirs) {
        // Without a lookup function, a device cannot be traced (OpenMP 5.2, 19.5.2.19).
        let lookup = lookup.filter(|_| ours.is_none());
        // SAFETY: as above.
        unsafe { theirs(device_num, device_type, device, lookup, documentation) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_callback_has_its_function() {
        for (_, number) in ompt_callbacks_t::VALUES {
            assert!(both(ompt_callbacks_t(*number)).is_some());
            assert!((*number as usize) < NUMBERS);
        }
        assert!(both(ompt_callbacks_t(63)).is_none());
    }

    #[test]
    fn the_program_hears_of_control_tool_what_the_second_tool_answers() {
        assert_eq!(c_int::of(Some(0), None), 0);
        assert_eq!(c_int::of(Some(0), Some(1)), 0);
        assert_eq!(c_int::of(Some(0), Some(64)), 64);
        assert_eq!(c_int::of(None, Some(1)), 1);
    }
}
