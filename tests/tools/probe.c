/* An OMPT tool that asks the runtime. Compiled with -DREFUSE its ompt_start_tool returns NULL; with -DDECLINE its
 * initialize returns 0.
 *
 * The callback control_tool returns the answer to the question that its command is, one of `enum question`.
 */
#include <omp-tools.h>
#include <string.h>

enum question {
  STATE = 100,
  WAIT_ID,
  TEAM_SIZE,
  THREAD_NUM,
  TASKS,
  HAS_THREAD_DATA,
  NUM_PROCS,
  NUM_PLACES,
  PLACE_NUM,
  NUM_DEVICES,
  STATES,
  MUTEX_IMPLS,
  UNIQUE_IDS_DIFFER,
  HAS_OWN_CALLBACK,
  FINALIZE,
};

static ompt_function_lookup_t find;
static int finalized;

#define ASK(entry_point) ((entry_point##_t)find(#entry_point))

static int count_states(void) {
  int state = ompt_state_undefined, states = 0;
  const char *name;
  while (ASK(ompt_enumerate_states)(state, &state, &name))
    states += strncmp(name, "ompt_state_", 11) == 0;
  return states;
}

static int count_mutex_impls(void) {
  int impl = ompt_mutex_impl_none, impls = 0;
  const char *name;
  while (ASK(ompt_enumerate_mutex_impls)(impl, &impl, &name))
    impls += name[0] != 0;
  return impls;
}

static int count_tasks(void) {
  int tasks = 0;
  while (ASK(ompt_get_task_info)(tasks, NULL, NULL, NULL, NULL, NULL) == 2)
    tasks++;
  return tasks;
}

static int on_control_tool(uint64_t command, uint64_t modifier, void *arg, const void *codeptr_ra) {
  ompt_wait_id_t wait_id = 0;
  ompt_data_t *data = NULL;
  ompt_callback_t callback = NULL;
  int number = -1;
  switch (command) {
  case STATE:
    return ASK(ompt_get_state)(&wait_id);
  case WAIT_ID:
    ASK(ompt_get_state)(&wait_id);
    return (int)wait_id;
  case TEAM_SIZE:
    ASK(ompt_get_parallel_info)(0, &data, &number);
    return number;
  case THREAD_NUM:
    ASK(ompt_get_task_info)(0, NULL, &data, NULL, NULL, &number);
    return number;
  case TASKS:
    return count_tasks();
  case HAS_THREAD_DATA:
    return ASK(ompt_get_thread_data)() != NULL;
  case NUM_PROCS:
    return ASK(ompt_get_num_procs)();
  case NUM_PLACES:
    return ASK(ompt_get_num_places)();
  case PLACE_NUM:
    return ASK(ompt_get_place_num)();
  case NUM_DEVICES:
    return ASK(ompt_get_num_devices)();
  case STATES:
    return count_states();
  case MUTEX_IMPLS:
    return count_mutex_impls();
  case UNIQUE_IDS_DIFFER:
    return ASK(ompt_get_unique_id)() != ASK(ompt_get_unique_id)();
  case HAS_OWN_CALLBACK:
    return ASK(ompt_get_callback)(ompt_callback_control_tool, &callback) &&
           callback == (ompt_callback_t)on_control_tool &&
           !ASK(ompt_get_callback)(ompt_callback_work, &callback);
  case FINALIZE:
    ASK(ompt_finalize_tool)();
    return finalized;
  }
  return -1;
}

static int initialize(ompt_function_lookup_t lookup, int initial_device_num, ompt_data_t *tool_data) {
  find = lookup;
  if (lookup("ompt_no_such_entry_point"))
    return 0;
  ASK(ompt_set_callback)(ompt_callback_control_tool, (ompt_callback_t)on_control_tool);
#ifdef DECLINE
  return 0;
#endif
  return 1;
}

static void finalize(ompt_data_t *tool_data) { finalized++; }

ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version, const char *runtime_version) {
#ifdef REFUSE
  return NULL;
#endif
  static ompt_start_tool_result_t result = {initialize, finalize, {0}};
  return &result;
}
