! Names phases of a Fortran program for omptrace. Compile this file with the program. Without the tracer, each call costs a test.
!
!     use omptrace
!     call omptrace_begin("step", domain="solver")
!     call omptrace_end(domain="solver")
!     call omptrace_frame_begin("time loop")
!     call omptrace_frame_end("time loop")
!     call omptrace_mark("converged")
!     call omptrace_count("iterations", 17_8)
!
! Apache-2.0 OR MIT.
module omptrace
    use, intrinsic :: iso_c_binding
    implicit none
    private
    public :: omptrace_begin, omptrace_end, omptrace_frame_begin, omptrace_frame_end, omptrace_mark, omptrace_count

    ! The same structure as in omptrace.h.
    type, bind(c) :: functions_of_tracer
        integer(c_int32_t) :: version
        type(c_funptr) :: begin, end, frame_begin, frame_end, mark, count
    end type

    abstract interface
        subroutine of_domain(domain) bind(c)
            import :: c_ptr
            type(c_ptr), value :: domain
        end subroutine
        subroutine of_name(domain, name) bind(c)
            import :: c_ptr
            type(c_ptr), value :: domain, name
        end subroutine
        subroutine of_value(domain, name, number) bind(c)
            import :: c_ptr, c_int64_t
            type(c_ptr), value :: domain, name
            integer(c_int64_t), value :: number
        end subroutine
        function get_functions(version) bind(c)
            import :: c_ptr, c_int32_t
            integer(c_int32_t), value :: version
            type(c_ptr) :: get_functions
        end function
    end interface

    interface
        function getenv(name) bind(c)
            import :: c_ptr, c_char
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr) :: getenv
        end function
        function dlopen(path, flags) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: path
            integer(c_int), value :: flags
            type(c_ptr) :: dlopen
        end function
        function dlsym(library, name) bind(c)
            import :: c_ptr, c_char, c_funptr
            type(c_ptr), value :: library
            character(kind=c_char), intent(in) :: name(*)
            type(c_funptr) :: dlsym
        end function
    end interface

    type(functions_of_tracer), pointer, save :: tracer => null()
    logical, save :: is_known = .false.

contains

    logical function has_tracer()
        integer(c_int), parameter :: rtld_lazy = 1
        integer(c_int32_t), parameter :: version = 1
        type(c_ptr) :: path, library, table
        type(c_funptr) :: found
        procedure(get_functions), pointer :: annotations
        if (.not. is_known) then
            path = getenv("OMPTRACE_ANNOTATION_LIBRARY" // c_null_char)
            if (c_associated(path)) then
                library = dlopen(path, rtld_lazy)
                if (c_associated(library)) then
                    found = dlsym(library, "omptrace_annotations" // c_null_char)
                    if (c_associated(found)) then
                        call c_f_procpointer(found, annotations)
                        table = annotations(version)
                        if (c_associated(table)) call c_f_pointer(table, tracer)
                    end if
                end if
            end if
            is_known = .true.
        end if
        has_tracer = associated(tracer)
    end function

    subroutine omptrace_begin(name, domain)
        character(*), intent(in) :: name
        character(*), intent(in), optional :: domain
        if (has_tracer()) call call_named(tracer%begin, name, domain)
    end subroutine

    subroutine omptrace_end(domain)
        character(*), intent(in), optional :: domain
        if (has_tracer()) call call_of_domain(tracer%end, domain)
    end subroutine

    subroutine omptrace_frame_begin(domain)
        character(*), intent(in) :: domain
        if (has_tracer()) call call_of_domain(tracer%frame_begin, domain)
    end subroutine

    subroutine omptrace_frame_end(domain)
        character(*), intent(in) :: domain
        if (has_tracer()) call call_of_domain(tracer%frame_end, domain)
    end subroutine

    subroutine omptrace_mark(name, domain)
        character(*), intent(in) :: name
        character(*), intent(in), optional :: domain
        if (has_tracer()) call call_named(tracer%mark, name, domain)
    end subroutine

    subroutine omptrace_count(name, number, domain)
        character(*), intent(in) :: name
        integer(c_int64_t), intent(in) :: number
        character(*), intent(in), optional :: domain
        character(kind=c_char, len=:), allocatable, target :: c_name, c_domain
        procedure(of_value), pointer :: procedure
        if (.not. has_tracer()) return
        call c_f_procpointer(tracer%count, procedure)
        c_name = trim(name) // c_null_char
        if (present(domain)) then
            c_domain = trim(domain) // c_null_char
            call procedure(c_loc(c_domain), c_loc(c_name), number)
        else
            call procedure(c_null_ptr, c_loc(c_name), number)
        end if
    end subroutine

    subroutine call_named(function, name, domain)
        type(c_funptr), intent(in) :: function
        character(*), intent(in) :: name
        character(*), intent(in), optional :: domain
        character(kind=c_char, len=:), allocatable, target :: c_name, c_domain
        procedure(of_name), pointer :: procedure
        call c_f_procpointer(function, procedure)
        c_name = trim(name) // c_null_char
        if (present(domain)) then
            c_domain = trim(domain) // c_null_char
            call procedure(c_loc(c_domain), c_loc(c_name))
        else
            call procedure(c_null_ptr, c_loc(c_name))
        end if
    end subroutine

    subroutine call_of_domain(function, domain)
        type(c_funptr), intent(in) :: function
        character(*), intent(in), optional :: domain
        character(kind=c_char, len=:), allocatable, target :: c_domain
        procedure(of_domain), pointer :: procedure
        call c_f_procpointer(function, procedure)
        if (present(domain)) then
            c_domain = trim(domain) // c_null_char
            call procedure(c_loc(c_domain))
        else
            call procedure(c_null_ptr)
        end if
    end subroutine
end module
