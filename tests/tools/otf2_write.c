/* Writes an OTF2 archive by the reference library, as a script on stdin says: a record per line, its
 * name and numbers. Nothing is checked, so that archives may be as wrong as scripts make them.
 *
 *     otf2_write FOLDER < script
 *
 * Numbers are those of the library's enumerators; -1 is an undefined reference. Definitions:
 *
 *     clock OFFSET LENGTH                 paradigm PARADIGM CLASS
 *     string ID                           node ID PARENT
 *     group ID TYPE NODE CREATOR          (a location group)
 *     location ID TYPE GROUP MISCOUNT     (told to have MISCOUNT events more than it has)
 *     region ID PARADIGM                  attribute ID TYPE
 *     parameter ID TYPE                   member ID TYPE       (of metrics)
 *     class ID MEMBER...                  members ID TYPE PARADIGM MEMBER...   (a group)
 *     comm ID MEMBERS                     window ID COMM
 *     marker ID                           mark TIME MARKER SCOPE REFERENCE
 *     map LOCATION TYPE GLOBAL...         offset LOCATION TIME OFFSET
 *
 * `at LOCATION TIME EVENT ...` is an event, `with ATTRIBUTE TYPE VALUE` an attribute of the next. */
#include <otf2/otf2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20, LOCATIONS = 8, NUMBERS = 16, LINES = 256, WIDTH = 128 };

static OTF2_Archive *archive;
static OTF2_GlobalDefWriter *definitions;
static OTF2_AttributeList *attributes;
static uint64_t events[LOCATIONS];

/* A line of the script. */
struct line {
  char name[32];
  char event[32];
  int count;
  int64_t numbers[NUMBERS];
};

static OTF2_FlushType flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller,
                            bool is_final) {
  return OTF2_FLUSH;
}

static bool parse(char *text, struct line *line) {
  memset(line, 0, sizeof *line);
  for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n")) {
    char *end;
    int64_t number = strtoll(word, &end, 10);
    if (!*end && line->count < NUMBERS)
      line->numbers[line->count++] = number;
    else
      strcpy(line->name[0] ? line->event : line->name, word);
  }
  return line->name[0];
}

static void write_event(const struct line *line) {
  const int64_t *n = line->numbers + 2;
  OTF2_EvtWriter *out = OTF2_Archive_GetEvtWriter(archive, line->numbers[0]);
  OTF2_AttributeList *list = attributes;
  OTF2_TimeStamp time = line->numbers[1];
  OTF2_MetricValue value = {.unsigned_int = 7};
  OTF2_Type type = n[1];
#define IS(name) !strcmp(line->event, name)
#define EVENT(kind, ...) OTF2_EvtWriter_##kind(out, list, time, ##__VA_ARGS__)
  if (IS("program_begin"))
    EVENT(ProgramBegin, 0, 0, NULL);
  else if (IS("program_end"))
    EVENT(ProgramEnd, 0);
  else if (IS("enter"))
    EVENT(Enter, n[0]);
  else if (IS("leave"))
    EVENT(Leave, n[0]);
  else if (IS("flush"))
    EVENT(BufferFlush, n[0]);
  else if (IS("fork"))
    EVENT(ThreadFork, OTF2_PARADIGM_OPENMP, 2);
  else if (IS("join"))
    EVENT(ThreadJoin, OTF2_PARADIGM_OPENMP);
  else if (IS("team_begin"))
    EVENT(ThreadTeamBegin, n[0]);
  else if (IS("team_end"))
    EVENT(ThreadTeamEnd, n[0]);
  else if (IS("create"))
    EVENT(ThreadTaskCreate, n[0], n[1], n[2]);
  else if (IS("switch"))
    EVENT(ThreadTaskSwitch, n[0], n[1], n[2]);
  else if (IS("complete"))
    EVENT(ThreadTaskComplete, n[0], n[1], n[2]);
  else if (IS("acquire"))
    EVENT(ThreadAcquireLock, OTF2_PARADIGM_OPENMP, n[0], n[1]);
  else if (IS("release"))
    EVENT(ThreadReleaseLock, OTF2_PARADIGM_OPENMP, n[0], n[1]);
  else if (IS("get"))
    EVENT(RmaGet, n[0], n[1], 64, n[2]);
  else if (IS("done"))
    EVENT(RmaOpCompleteBlocking, n[0], n[1]);
  else if (IS("send"))
    EVENT(MpiSend, n[1], n[0], 0, 64);
  else if (IS("receive"))
    EVENT(MpiRecv, n[1], n[0], 0, 64);
  else if (IS("metric"))
    EVENT(Metric, n[0], 1, &type, &value);
  else if (IS("string_parameter"))
    EVENT(ParameterString, n[0], n[1]);
  else if (IS("number_parameter"))
    EVENT(ParameterUnsignedInt, n[0], n[1]);
  else
    abort();
  events[line->numbers[0]]++;
}

static void write_attribute(const int64_t *n) {
  OTF2_AttributeValue value = {.uint64 = n[2]};
  OTF2_AttributeList_AddAttribute(attributes, n[0], n[1], value);
}

static void write_local(const struct line *line) {
  const int64_t *n = line->numbers;
  OTF2_DefWriter *out = OTF2_Archive_GetDefWriter(archive, n[0]);
  if (!strcmp(line->name, "offset")) {
    OTF2_DefWriter_WriteClockOffset(out, n[1], n[2], 0);
    return;
  }
  OTF2_IdMap *map =
      OTF2_IdMap_CreateFromUint64Array(line->count - 2, (const uint64_t *)n + 2, false);
  OTF2_DefWriter_WriteMappingTable(out, n[1], map);
  OTF2_IdMap_Free(map);
}

static void write_definition(const struct line *line) {
  const int64_t *n = line->numbers;
  OTF2_MetricMemberRef members[NUMBERS];
  for (int i = 1; i < line->count; i++)
    members[i - 1] = n[i];
#undef IS
#define IS(kind) !strcmp(line->name, kind)
#define DEFINE(kind, ...) OTF2_GlobalDefWriter_Write##kind(definitions, __VA_ARGS__)
  if (IS("clock"))
    DEFINE(ClockProperties, 1000000000, n[0], n[1], OTF2_UNDEFINED_TIMESTAMP);
  else if (IS("string"))
    DEFINE(String, n[0], n[0] ? "text" : "");
  else if (IS("paradigm"))
    DEFINE(Paradigm, n[0], 0, n[1]);
  else if (IS("node"))
    DEFINE(SystemTreeNode, n[0], 0, 0, n[1]);
  else if (IS("group"))
    DEFINE(LocationGroup, n[0], 0, n[1], n[2], n[3]);
  else if (IS("location"))
    DEFINE(Location, n[0], 0, n[1], events[n[0]] + n[3], n[2]);
  else if (IS("region"))
    DEFINE(Region, n[0], 0, 0, 0, OTF2_REGION_ROLE_CODE, n[1], OTF2_REGION_FLAG_NONE, 0, 0, 0);
  else if (IS("attribute"))
    DEFINE(Attribute, n[0], 0, 0, n[1]);
  else if (IS("parameter"))
    DEFINE(Parameter, n[0], 0, n[1]);
  else if (IS("member"))
    DEFINE(MetricMember, n[0], 0, 0, OTF2_METRIC_TYPE_OTHER, OTF2_METRIC_ABSOLUTE_POINT, n[1],
           OTF2_BASE_DECIMAL, 0, 0);
  else if (IS("class"))
    DEFINE(MetricClass, n[0], line->count - 1, members, OTF2_METRIC_ASYNCHRONOUS,
           OTF2_RECORDER_KIND_CPU);
  else if (IS("members"))
    DEFINE(Group, n[0], 0, n[1], n[2], OTF2_GROUP_FLAG_NONE, line->count - 3,
           (const uint64_t *)n + 3);
  else if (IS("comm"))
    DEFINE(Comm, n[0], 0, n[1], OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE);
  else if (IS("window"))
    DEFINE(RmaWin, n[0], 0, n[1], OTF2_RMA_WIN_FLAG_NONE);
  else
    abort();
}

static void write_marker(const struct line *line) {
  const int64_t *n = line->numbers;
  OTF2_MarkerWriter *out = OTF2_Archive_GetMarkerWriter(archive);
  if (!strcmp(line->name, "marker"))
    OTF2_MarkerWriter_WriteDefMarker(out, n[0], "group", "category", OTF2_SEVERITY_LOW);
  else
    OTF2_MarkerWriter_WriteMarker(out, n[0], 0, n[1], n[2], n[3], "text");
}

static bool is_one_of(const struct line *line, const char *names) {
  return strstr(names, line->name);
}

int main(int argc, char **argv) {
  static char text[LINES][WIDTH];
  static struct line lines[LINES];
  static OTF2_FlushCallbacks callbacks = {flush, NULL};
  int count = 0;
  for (int read = 0; read < LINES && fgets(text[read], WIDTH, stdin); read++)
    count += parse(text[read], &lines[count]);
  archive = OTF2_Archive_Open(argv[1], "traces", OTF2_FILEMODE_WRITE, CHUNK, CHUNK,
                              OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  attributes = OTF2_AttributeList_New();
  if (argc != 2 || !archive || OTF2_Archive_SetFlushCallbacks(archive, &callbacks, NULL) ||
      OTF2_Archive_SetSerialCollectiveCallbacks(archive) || OTF2_Archive_OpenEvtFiles(archive))
    return EXIT_FAILURE;
  for (int i = 0; i < count; i++) {
    if (is_one_of(&lines[i], "with"))
      write_attribute(lines[i].numbers);
    else if (is_one_of(&lines[i], "at"))
      write_event(&lines[i]);
    else if (!strcmp(lines[i].name, "location"))
      OTF2_Archive_GetEvtWriter(archive, lines[i].numbers[0]);
  }
  OTF2_Archive_CloseEvtFiles(archive);
  OTF2_Archive_OpenDefFiles(archive);
  for (int i = 0; i < count; i++) {
    if (is_one_of(&lines[i], "map offset"))
      write_local(&lines[i]);
    else if (!strcmp(lines[i].name, "location"))
      OTF2_Archive_GetDefWriter(archive, lines[i].numbers[0]);
  }
  OTF2_Archive_CloseDefFiles(archive);
  definitions = OTF2_Archive_GetGlobalDefWriter(archive);
  for (int i = 0; i < count; i++) {
    if (is_one_of(&lines[i], "marker"))
      write_marker(&lines[i]);
    else if (!is_one_of(&lines[i], "with at map offset"))
      write_definition(&lines[i]);
  }
  return OTF2_Archive_Close(archive) != OTF2_SUCCESS;
}
