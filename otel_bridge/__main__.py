"""`python -m otel_bridge` is `otel-bridge`."""

from otel_bridge.cli.main import main

if __name__ == "__main__":
    main()
