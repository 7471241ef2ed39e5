"""The verb `record`: options, progress and summary of a recorder (`stretto.recorder.host`)."""
