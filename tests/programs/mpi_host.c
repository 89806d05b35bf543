/* Opens mpi_unharmed as a library for itself alone (RTLD_LOCAL), as Python opens its extensions, and goes on there. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
  void *plugin = dlopen(PLUGIN_PATH, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) {
    fprintf(stderr, "%s\n", dlerror());
    return 9;
  }
  int (*plugin_main)(int, char **) = (int (*)(int, char **))dlsym(plugin, "plugin_main");
  return plugin_main(count, arguments);
}
