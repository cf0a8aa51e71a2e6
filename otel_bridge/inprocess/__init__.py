"""The bridge inside a program: entries come from its own calls, not from a file.

    Bridge          takes entries (`feed`) and exports what they become, by OTLP or by an exporter of the host's
    BridgeHandler   the same as a `logging.Handler`, for programs that log in this format
    convert         lines -> finished spans, for people who want to do their own thing

    host's thread:   entry ──snapshot (JSON, redacted)──▶ intake (bounded)
    bridge's thread:                                      intake ──▶ mapping ──▶ sink (OTLP, exporter, processor)

There is no log to go back to: what finds the intake full, or has no answer when the program ends, is lost, counted
and said. All three are exported by `otel_bridge` itself.
"""
