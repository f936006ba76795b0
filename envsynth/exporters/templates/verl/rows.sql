-- A row a task, in the columns that verl's data loader reads.
SELECT
    $package AS agent_name, $package AS data_source, 'tool use' AS ability,
    [{'role': 'user', 'content': content}] AS prompt,
    {'style': 'rule', 'ground_truth': ''} AS reward_model,
    {'index': index, 'task': task} AS extra_info
FROM (SELECT unnest($index) AS index, unnest($task) AS task, unnest($content) AS content)
ORDER BY index
