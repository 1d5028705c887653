"""``python -m vlasov.cli``."""

from vlasov.cli.app import main

main()
