"""Records a program and its descendants: what lies behind `stretto record`.

    host/                                         target/
    in the recorder process                       in each recorded process
      workspace_folder   0700 folder  <--PYTHONPATH--   sitecustomize, bootstrap
      *_recording        the session  <--sockets, shared memory--  backends.system
      program            starts it, waits for it, forwards signals
      output             file, pipe, ring file
      reporter           what the user sees; the command line implements it

The modules of this folder are used by both sides: the workspace, the fork socket, and what a
Python's command line says about whether it can be recorded. Recorded programs import them and
`target`, so they are as light as the client.
"""
