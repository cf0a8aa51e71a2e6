"""What survives a restart: how far each log was delivered, and what is still open.

::

    from otel_bridge.state.commit import Commit, Counts, LastError, RunStatus
    from otel_bridge.state.place import state_folder
    from otel_bridge.state.store import StateStore

    folder = state_folder(argument)                          # argument > OTEL_BRIDGE_STATE_DIR > the platform's folder
    with StateStore.open(folder) as store:                   # StateError: in use (by which process), torn, foreign ...
        state = store.load()
        state.checkpoints                                    # {generation: values for Checkpoint.from_json}
        state.logs                                           # {chain: SavedLog(log, sessions, occurrences)}
        store.commit(                                        # one transaction; what is left out stays as it is
            Commit(
                checkpoints={generation: checkpoint.to_json(), other: None},        # None: forget it
                logs={chain: take_changes(mapping)},
                forgotten_chains=frozenset({chain}),         # no file of it is left, and nothing in it is open
                counts=Counts(delivered_spans=512, lost_bytes={"gap": 10}, malformed_lines={"not JSON": 1}),
                last_error=LastError(time_ms, "one line"),   # without headers and user info
                run=RunStatus(time_ms, endpoint),            # what `status` shows besides
            )
        )                                                    # StateError: keep it; later commit kept.merged_with(next)

One bridge a folder: the lock goes with the process, however it ends. `reading.read_state(folder)` looks without
disturbing one that runs. (Nothing is imported here, so that `status` loads only what it shows.)
"""
