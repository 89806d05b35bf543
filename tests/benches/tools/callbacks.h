/* An OMPT tool that registers every host callback of OpenMP 5.2 and hands each to record(), with
 * the argument that tells most. The tools of the benchmark differ in record() alone. Each defines,
 * before it includes this file,
 *
 *   static inline void record(uint64_t callback, uint64_t argument);
 *   static int begin_tool(void);    before any callback; 0 where the tool cannot run
 *   static void end_thread(void);   on the thread itself, behind its thread_end
 *   static void end_tool(void);     when the runtime finalizes the tool
 */
#include <omp-tools.h>
#include <omp.h>
#include <stdint.h>

/* ON(event, argument, parameters...) defines on_event, which records the argument. */
#define ON(event, argument, ...)                                                                   \
  static void on_##event(__VA_ARGS__) { record(ompt_callback_##event, (uint64_t)(argument)); }

/* An address and an endpoint in one word. */
#define AT(codeptr, endpoint) ((uint64_t)(uintptr_t)(codeptr) | (uint64_t)(endpoint) << 48)

ON(thread_begin, type, ompt_thread_t type, ompt_data_t *thread)
static void on_thread_end(ompt_data_t *thread) {
  record(ompt_callback_thread_end, 0);
  end_thread();
}
ON(parallel_begin, codeptr, ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *parallel,
   unsigned requested, int flags, const void *codeptr)
ON(parallel_end, codeptr, ompt_data_t *parallel, ompt_data_t *task, int flags, const void *codeptr)
ON(task_create, codeptr, ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *new_task,
   int flags, int has_dependences, const void *codeptr)
ON(task_schedule, status, ompt_data_t *prior, ompt_task_status_t status, ompt_data_t *next)
ON(implicit_task, endpoint, ompt_scope_endpoint_t endpoint, ompt_data_t *parallel,
   ompt_data_t *task, unsigned actual, unsigned index, int flags)
ON(sync_region_wait, AT(codeptr, endpoint), ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
   ompt_data_t *parallel, ompt_data_t *task, const void *codeptr)
ON(mutex_released, wait_id, ompt_mutex_t kind, ompt_wait_id_t wait_id, const void *codeptr)
ON(dependences, n, ompt_data_t *task, const ompt_dependence_t *dependences, int n)
ON(task_dependence, 0, ompt_data_t *source, ompt_data_t *sink)
ON(work, AT(codeptr, endpoint), ompt_work_t type, ompt_scope_endpoint_t endpoint,
   ompt_data_t *parallel, ompt_data_t *task, uint64_t n, const void *codeptr)
ON(masked, AT(codeptr, endpoint), ompt_scope_endpoint_t endpoint, ompt_data_t *parallel,
   ompt_data_t *task, const void *codeptr)
ON(sync_region, AT(codeptr, endpoint), ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
   ompt_data_t *parallel, ompt_data_t *task, const void *codeptr)
ON(lock_init, wait_id, ompt_mutex_t kind, unsigned hint, unsigned implementation,
   ompt_wait_id_t wait_id, const void *codeptr)
ON(lock_destroy, wait_id, ompt_mutex_t kind, ompt_wait_id_t wait_id, const void *codeptr)
ON(mutex_acquire, wait_id, ompt_mutex_t kind, unsigned hint, unsigned implementation,
   ompt_wait_id_t wait_id, const void *codeptr)
ON(mutex_acquired, wait_id, ompt_mutex_t kind, ompt_wait_id_t wait_id, const void *codeptr)
ON(nest_lock, wait_id, ompt_scope_endpoint_t endpoint, ompt_wait_id_t wait_id, const void *codeptr)
ON(flush, codeptr, ompt_data_t *thread, const void *codeptr)
ON(cancel, codeptr, ompt_data_t *task, int flags, const void *codeptr)
ON(reduction, AT(codeptr, endpoint), ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
   ompt_data_t *parallel, ompt_data_t *task, const void *codeptr)
ON(dispatch, instance.value, ompt_data_t *parallel, ompt_data_t *task, ompt_dispatch_t kind,
   ompt_data_t instance)
ON(error, codeptr, ompt_severity_t severity, const char *message, size_t length,
   const void *codeptr)
ON(device_initialize, device, int device, const char *type, ompt_device_t *handle,
   ompt_function_lookup_t lookup, const char *documentation)
ON(device_finalize, device, int device)
ON(device_load, device, int device, const char *file, int64_t offset, void *in_file, size_t bytes,
   void *host, void *on_device, uint64_t module)
ON(device_unload, device, int device, uint64_t module)
ON(target_emi, AT(codeptr, endpoint), ompt_target_t kind, ompt_scope_endpoint_t endpoint,
   int device, ompt_data_t *task, ompt_data_t *target_task, ompt_data_t *target,
   const void *codeptr)
ON(target_data_op_emi, bytes, ompt_scope_endpoint_t endpoint, ompt_data_t *target_task,
   ompt_data_t *target, ompt_id_t *op, ompt_target_data_op_t type, void *source, int source_device,
   void *destination, int destination_device, size_t bytes, const void *codeptr)
ON(target_submit_emi, teams, ompt_scope_endpoint_t endpoint, ompt_data_t *target, ompt_id_t *op,
   unsigned teams)
ON(target_map_emi, n, ompt_data_t *target, unsigned n, void **host, void **on_device, size_t *bytes,
   unsigned *flags, const void *codeptr)

/* The runtime hands this callback's result to the program, so it is no plain ON. */
static int on_control_tool(uint64_t command, uint64_t modifier, void *argument,
                           const void *codeptr) {
  record(ompt_callback_control_tool, command);
  return omp_control_tool_success;
}

static int initialize(ompt_function_lookup_t lookup, int initial_device, ompt_data_t *tool) {
  ompt_set_callback_t set_callback = (ompt_set_callback_t)lookup("ompt_set_callback");
  if (!begin_tool())
    return 0;
#define SET(event) set_callback(ompt_callback_##event, (ompt_callback_t)on_##event);
  SET(thread_begin)
  SET(thread_end)
  SET(parallel_begin)
  SET(parallel_end)
  SET(task_create)
  SET(task_schedule)
  SET(implicit_task)
  SET(control_tool)
  SET(device_initialize)
  SET(device_finalize)
  SET(device_load)
  SET(device_unload)
  SET(sync_region_wait)
  SET(mutex_released)
  SET(dependences)
  SET(task_dependence)
  SET(work)
  SET(masked)
  SET(sync_region)
  SET(lock_init)
  SET(lock_destroy)
  SET(mutex_acquire)
  SET(mutex_acquired)
  SET(nest_lock)
  SET(flush)
  SET(cancel)
  SET(reduction)
  SET(dispatch)
  SET(target_emi)
  SET(target_data_op_emi)
  SET(target_submit_emi)
  SET(target_map_emi)
  SET(error)
#undef SET
  return 1;
}

static void finalize(ompt_data_t *tool) { end_tool(); }

ompt_start_tool_result_t *ompt_start_tool(unsigned omp_version, const char *runtime_version) {
  static ompt_start_tool_result_t result = {initialize, finalize, {0}};
  return &result;
}
