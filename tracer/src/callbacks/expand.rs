//! Expands a row of the table to an `extern "C"` function.

/// Defines the callback functions and the list of all callbacks:
///
/// ```text
/// group: hot  name(arguments) |state| row        tries the hot path, then the function for mispredictions
/// group: warm name(arguments) |state| row        starts with the function for mispredictions
/// group: cold name(arguments) |stream| row       a wide event
/// group: registers name(arguments) |stream| row   the same, but with a declaration that differs from the specification
/// group: own  name                               defined below the table
/// ```
///
/// The compiler checks the signatures against those of `ompt-sys`, except for `registers` rows.
macro_rules! callbacks {
    ($( $group:ident: $way:ident $name:ident $(($($argument:ident: $type:ty),*) |$with:ident| $row:expr)?; )*) => {
        $(callbacks!(@ $way $name $(($($argument: $type),*) |$with| $row)?);)*
        $(callbacks!(@ check $way $name);)*

        /// All callbacks of the interface, in the order of their numbers.
        pub static CALLBACKS: &[Callback] = &[$(Callback {
            number: callback::$name,
            name: stringify!($name),
            group: stringify!($group),
            // SAFETY: `ompt_set_callback` takes all callbacks as this type; the runtime calls each with the
            // arguments that belong to its number (OpenMP 5.2, 19.4.2.4).
            function: unsafe { transmute::<*const c_void, ompt_callback_t>($name as *const c_void) },
        }),*];
    };
    (@ hot $name:ident ($($argument:ident: $type:ty),*) |$state:ident| $row:expr) => {
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) {
            callbacks!(@ warm surprised ($($argument: $type),*) |$state| $row);
            #[allow(unused_variables, reason = "rows without ids need no state")]
            let done = this_thread::recorder_if_near().try_put_predicted(|$state: &State| {
                // SAFETY: the runtime passes arguments as the specification says; see `id` and its like.
                #[allow(unused_unsafe, reason = "rows without pointers")]
                unsafe { $row }
            });
            if !done {
                // SAFETY: the arguments of this call.
                unsafe { surprised($($argument),*) }
            }
        }
    };
    // `$first` runs before the function for mispredictions.
    (@ hot $name:ident ($($argument:ident: $type:ty),*) |$state:ident| $row:expr; first $first:expr) => {
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) {
            #[inline(never)]
            unsafe extern "C" fn twin($($argument: $type),*) {
                callbacks!(@ warm surprised ($($argument: $type),*) |$state| $row);
                // SAFETY: the arguments of this call.
                unsafe {
                    $first;
                    surprised($($argument),*)
                }
            }
            #[allow(unused_variables, reason = "rows without ids need no state")]
            let done = this_thread::recorder_if_near().try_put_predicted(|$state: &State| {
                // SAFETY: the runtime passes arguments as the specification says; see `id` and its like.
                unsafe { $row }
            });
            if !done {
                // SAFETY: the arguments of this call.
                unsafe { twin($($argument),*) }
            }
        }
    };
    (@ warm $name:ident ($($argument:ident: $type:ty),*) |$state:ident| $row:expr) => {
        #[inline(never)]
        unsafe extern "C" fn $name($($argument: $type),*) {
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn rare($($argument: $type),*) {
                #[allow(unused_variables, reason = "rows without ids need no state")]
                guarded(|| cold_path::compact(|$state: &State| {
                    // SAFETY: as below.
                    #[allow(unused_unsafe, reason = "rows without pointers")]
                    unsafe { $row }
                }));
            }
            #[allow(unused_variables, reason = "rows without ids need no state")]
            let done = this_thread::recorder_if_near().try_put(|$state: &State| {
                // SAFETY: the runtime passes arguments as the specification says; see `id` and its like.
                #[allow(unused_unsafe, reason = "rows without pointers")]
                unsafe { $row }
            });
            if !done {
                // SAFETY: the arguments of this call.
                unsafe { rare($($argument),*) }
            }
        }
    };
    (@ cold $name:ident ($($argument:ident: $type:ty),*) |$stream:ident| $row:expr) => {
        unsafe extern "C" fn $name($($argument: $type),*) {
            #[allow(unused_variables, reason = "rows without ids need no stream")]
            guarded(|| cold_path::wide(|recorder| {
                let $stream = &recorder.stream;
                // SAFETY: as above.
                #[allow(unused_unsafe, reason = "rows without pointers")]
                unsafe { $row }
            }));
        }
    };
    // `$around` runs instead of recording the event; it calls `$record` to record the event.
    (@ cold $name:ident ($($argument:ident: $type:ty),*) |$stream:ident| $row:expr; around |$record:ident| $around:expr) => {
        unsafe extern "C" fn $name($($argument: $type),*) {
            callbacks!(@ cold recorded ($($argument: $type),*) |$stream| $row);
            // SAFETY: the arguments of this call.
            let $record = || unsafe { recorded($($argument),*) };
            $around
        }
    };
    (@ registers $($row:tt)*) => { callbacks! { @ cold $($row)* } };
    (@ own $name:ident) => {};
    (@ check registers $name:ident) => {};
    (@ check $way:ident $name:ident) => { const _: callback::$name = $name; };
}
pub(super) use callbacks;
