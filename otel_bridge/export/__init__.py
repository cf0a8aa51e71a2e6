"""From finished spans to a backend's word.

    settings = resolve_export_settings(endpoint=..., protocol=..., headers=[...], service_name=...)   # settings.py
    encoder  = SpanEncoder()                                     # encode.py: Span -> EncodedSpan (bytes)
    request  = RequestEncoder(settings.resource, Scope())        # encode.py: EncodedSpans -> OTLP request (bytes)
    transport = open_transport(settings)                         # transport.py: OTLP/HTTP, OTLP/gRPC or console
    letters  = DeadLetters(state_dir / "dead-letters.jsonl")     # dead_letters.py: refused spans, for `resend`

    delivery = Delivery(transport, request, letters, on_commit, on_bulletin=show, on_room=wake)   # delivery.py
    while more:
        if delivery.wait_for_room(timeout_s):                    # bounded: 4 batches in the air
            delivery.submit(Batch(tuple(encoder.encode(span) for span in spans), mark))
    delivery.wait_until_done(timeout_s)                          # a replay waits; statistics() says what keeps it
    outcome = delivery.close(deadline_s=5.0)                     # Outcome: delivered, refused, lost, left, reason

`on_commit(mark)` comes once a batch, in order, from the delivery's thread; it may raise StateError to be called again
later. What a reply means is in `verdict.judge`, and only there. Importing this package imports nothing heavy;
`open_transport` imports what its protocol needs.
"""
