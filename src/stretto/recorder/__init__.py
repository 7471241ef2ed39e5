"""Records a program and its descendants: the implementation of `stretto record`.

    host/                                         target/
    in the recorder process                       in each recorded process
      workspace_folder   0700 folder  <--PYTHONPATH--   sitecustomize, bootstrap
      *_recording        the session  <--sockets, shared memory--  backends.system
      program            starts it, waits for it, forwards signals
      output             file, pipe, ring file
      reporter           messages to the user; implemented by the command line

The modules of this folder are used on both sides: the workspace, the fork socket, and the check of
a Python's command line. Recorded programs import them and `target`, so they import as few modules
as the client does.
"""
