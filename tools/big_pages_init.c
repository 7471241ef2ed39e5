/* The first process of the virtual machine of tools/big_pages: runs each
 * program of /tests, prints its result, and switches the machine off. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void mount_at(const char* type, const char* path) {
  mkdir(path, 0777);
  if (mount(type, path, type, 0, NULL) != 0)
    perror(path);
}

static void run(const char* name) {
  char path[300], log[300];
  int status = -1;
  snprintf(path, sizeof path, "/tests/%s", name);
  snprintf(log, sizeof log, "/tmp/%s", name);
  pid_t pid = fork();
  if (pid == 0) {
    freopen(log, "w", stdout);
    dup2(1, 2);
    execl(path, path, NULL);
    _exit(127);
  }
  waitpid(pid, &status, 0);
  printf("%s %s\n", status == 0 ? "passed" : "FAILED", name);
  FILE* output = status == 0 ? NULL : fopen(log, "r");
  for (int c; output && (c = getc(output)) != EOF;)
    putchar(c);
}

int main(void) {
  struct dirent** names;
  mount_at("proc", "/proc");
  mount_at("sysfs", "/sys");
  mount_at("devtmpfs", "/dev");
  mount_at("tmpfs", "/dev/shm");
  mount_at("tmpfs", "/tmp");
  setvbuf(stdout, NULL, _IONBF, 0);
  printf("pages of %ld bytes\n", sysconf(_SC_PAGESIZE));
  int count = scandir("/tests", &names, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    if (names[i]->d_name[0] != '.')
      run(names[i]->d_name);
  }
  printf("end of tests\n");
  return reboot(RB_POWER_OFF);
}
