"""The verb `record`: the command line of a recorder (`stretto.recorder.host`)."""
