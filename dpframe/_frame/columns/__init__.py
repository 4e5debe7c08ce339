"""What a tracked column takes over from others: functions of numpy and of pandas, and functions of
one value."""
