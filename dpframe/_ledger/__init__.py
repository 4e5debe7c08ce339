"""What was declared, spent and answered, for ever: accountants, their records, and where these are kept."""
