"""`stretto record`: a small parent process that holds the service and starts the program.

recorder (command)                          program and descendants (inside)
  workspace      0700 folder   <--PYTHONPATH--   sitecustomize
  recording      service, session  <--socket, shared memory--  backends.system
  program        child, signals  <--waits, forwards-->
  descendants    who isn't followed
  output         file, pipe, ring file
  summary, progress
"""
